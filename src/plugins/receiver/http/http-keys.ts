// Workflow IDs for HTTP requests. What a request brings is hashed, so that no caller can choose an ID: not that of a
// child, a schedule or a message, nor one of another route or caller.
import { createHash } from 'node:crypto';
import { InvalidReceiverError } from '../../../kernel/errors/errors.js';
import { messageOf, wrong } from '../../../kernel/check/validation.js';

const HASH_LENGTH = 32;

/** Where an idempotency key or a `webhook-id` is unique. */
interface KeyNamespace {
  readonly kind: 'http' | 'webhook';
  /** The path of the route, with its parameters as declared. */
  readonly path: string;
  readonly functionName: string;
  readonly scope?: string;
}

export function workflowIDFor({ kind, path, functionName, scope }: KeyNamespace, key: string): string {
  const named = JSON.stringify([path, functionName, scope ?? null, key]);
  return `${kind}-${createHash('sha256').update(named).digest('hex').slice(0, HASH_LENGTH)}`;
}

/** Without a scope, the keys of all callers would be one namespace again. So a missing one is an error. */
export function checkedScope(scope: unknown): string {
  if (typeof scope === 'string') return scope;
  throw new InvalidReceiverError(messageOf(wrong('a string', scope), 'The result of keyScope'));
}
