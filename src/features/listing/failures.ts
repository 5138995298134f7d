// The latest failures, grouped by function and kind of error.
import { inspect } from 'node:util';
import { excerptOf } from '../../kernel/base/excerpt.js';
import { type FailedWorkflow, findFailures } from './failures.sql.js';
import { type Operator, queryTimeoutMs } from '../../operator/operator.js';
import { readable } from './status.js';

export interface FailureGroup {
  readonly name: string;
  /** The error of the newest, in one line. */
  readonly error: string;
  readonly count: number;
}

/** More than these are not read. */
const FAILURES_MAX = 1000;
const TEXT_LIMITS = { nodes: 100, characters: 1000, depth: 5 };

/** The most frequent first. Numbers and IDs in messages do not tell errors apart. */
export async function groupFailures(operator: Operator, since: number): Promise<FailureGroup[]> {
  const { database, applicationName } = operator;
  const query = { since, limit: FAILURES_MAX, applicationName, timeoutMs: queryTimeoutMs(operator) };
  const failures = await operator.retrying(() => findFailures(database, query));
  const groups = new Map<string, FailureGroup>();
  for (const failure of failures) {
    const error = await textOf(operator, failure);
    const key = JSON.stringify([failure.name, error.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+|"[^"]*"/gi, '#')]);
    const { count, ...newest } = groups.get(key) ?? { name: failure.name, error, count: 0 };
    groups.set(key, { ...newest, count: count + 1 });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

async function textOf({ codec }: Operator, { error, serialization }: FailedWorkflow): Promise<string> {
  if (error === null) return 'An error that is too long to be shown here';
  const decoded = await readable(error, () => codec.decodeError(error, serialization));
  const text =
    decoded instanceof Error ? `${decoded.name}: ${decoded.message}` : inspect(excerptOf(decoded, TEXT_LIMITS).value);
  return text.slice(0, TEXT_LIMITS.characters).replaceAll(/\s+/g, ' ').trim();
}
