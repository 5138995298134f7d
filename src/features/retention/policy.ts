// How long workflows are kept after they have ended.
import { type Duration, durationMs } from '../../kernel/base/duration.js';
import { hasEnded, type WorkflowStatusString } from '../../kernel/workflow/status.js';
import { type Check, duration, mapOf, optional, record } from '../../kernel/check/validation.js';

/** Both by the time of completion. What is not named is kept. */
export interface KeptFor {
  /** Workflows that have succeeded. */
  readonly completed?: Duration;
  /** Workflows that have failed, were cancelled, or were recovered too often. */
  readonly failed?: Duration;
}

export interface RetentionPolicy extends KeptFor {
  /** For the workflows of a function, by its name, instead of the above. `{}` keeps them. */
  readonly perWorkflow?: Readonly<Record<string, KeptFor>>;
  /** How long the stored events of all workflows are kept after their end. The workflows stay. */
  readonly history?: Duration;
}

/** `retention` of the configuration. */
export interface RetentionConfig extends RetentionPolicy {
  /** How often old workflows are looked for. Default: 1 hour. */
  readonly every?: Duration;
}

const KEPT_FOR = { completed: optional(duration), failed: optional(duration) };
const POLICY = { ...KEPT_FOR, perWorkflow: optional(mapOf(record(KEPT_FOR))), history: optional(duration) };

export const retentionPolicy: Check<RetentionPolicy> = record(POLICY);
export const retentionConfig: Check<RetentionConfig> = record({ ...POLICY, every: optional(duration) });

interface EndedWorkflow {
  readonly name: string | null;
  readonly status: WorkflowStatusString;
}

/** How long a workflow is kept after its end; undefined if it is kept for good. */
export function keptMs(policy: RetentionPolicy, { name, status }: EndedWorkflow): number | undefined {
  if (!hasEnded(status)) return undefined;
  const own = name !== null && Object.hasOwn(policy.perWorkflow ?? {}, name) ? policy.perWorkflow?.[name] : policy;
  const kept = status === 'SUCCESS' ? own?.completed : own?.failed;
  return kept === undefined ? undefined : durationMs(kept);
}

/** The shortest time that any workflow is kept; undefined if the policy deletes nothing. */
export function shortestKeptMs({ completed, failed, perWorkflow = {} }: RetentionPolicy): number | undefined {
  const all = [{ completed, failed }, ...Object.values(perWorkflow)].flatMap((kept) => [kept.completed, kept.failed]);
  const given = all.filter((kept) => kept !== undefined).map((kept) => durationMs(kept));
  return given.length === 0 ? undefined : Math.min(...given);
}
