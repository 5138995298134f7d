// Deletes workflows some time after they have ended, by a policy, and archives them first if there is an archive. The walk
// goes by creation time, for which there is an index: nothing ends before it is created.
import { durationMs } from '../../kernel/base/duration.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { keptMs, type RetentionPolicy, retentionPolicy, shortestKeptMs } from './policy.js';
import type { WorkflowStatusString } from '../../kernel/workflow/status.js';
import { func, number, optional, positiveInteger, record } from '../../kernel/check/validation.js';
import { deleteUnchanged, findDeletable, measureHoldings, type SeenWorkflow } from './archive-index.sql.js';
import {
  type AgedRow,
  FIRST_ROW,
  type JournalCursor,
  listRows,
  pruneJournal,
  type PruneLimits,
} from '../history/pruning.sql.js';
import { type AgeCursor, type AgedWorkflow, type AgeRange, listByAge, OLDEST } from './retention.sql.js';
import { readNow } from '../../database/now.js';
import type { Operator } from '../../operator/operator.js';
import { prunePartitionsIfFree } from '../history/partitions.js';
import { archiveWorkflows } from './archive.js';
import type { Archive } from './archive-target.js';
import { BATCH_SIZE, Pace, type PaceOptions, PieceSize, walkFrom } from './paced-walk.js';

export interface ApplyRetentionOptions {
  /** Maximum number of workflows examined in one commit. With an archive they share an object. */
  readonly batchSize?: number;
  /** Pause after each commit, in multiples of its duration. 0 is fastest, if nothing else runs. */
  readonly restFactor?: number;
  /** Called after each commit. */
  readonly onProgress?: (applied: RetentionApplied) => void;
}

/** What the caller brings along. */
interface Means {
  readonly signal?: AbortSignal;
  /** Default: the configured one. */
  readonly archive?: Archive;
}

/** What has been deleted so far. */
export interface RetentionApplied {
  readonly workflows: number;
  /** How many of them were archived. */
  readonly archived: number;
  /** Stored events of other workflows; only if the policy has `history`. */
  readonly events?: number;
}

/** What a policy would delete now. */
export interface PlannedRetention {
  readonly name: string | null;
  readonly status: WorkflowStatusString;
  readonly workflows: number;
  /** Characters of inputs, outputs and errors, of workflows and steps. */
  readonly characters: number;
  /** Stored events: of these workflows, and of others if the policy has `history`. */
  readonly events: number;
  /** When the first of them ended. */
  readonly oldestEndedAt: number;
}

/**
 * A load that takes up the whole machine is slowed down by less than a tenth. SQLite does the work in the process, and others
 * wait for its commits.
 */
const REST_FACTORS = { postgres: 8, sqlite: 12 } as const;

const APPLY = record({
  batchSize: optional(positiveInteger),
  restFactor: optional(number()),
  onProgress: optional(func),
});

/** Deletes what the policy, by default the configured one, does not keep. If archiving fails, nothing of it is deleted. */
export async function applyRetention(
  operator: Operator,
  given: RetentionPolicy | undefined,
  options: ApplyRetentionOptions & Means = {},
): Promise<RetentionApplied> {
  const { signal, archive = operator.archive, ...rest } = options;
  const { batchSize, restFactor, onProgress } = { ...rest, ...APPLY.read(rest, 'options') } as ApplyRetentionOptions;
  let applied: RetentionApplied = { workflows: 0, archived: 0 };
  const policy = policyOf(operator, given);
  const walk = { batchSize, restFactor: restFactor ?? REST_FACTORS[operator.database.dialect.name], signal };
  await deleteDue(operator, await dueBy(operator, policy), { ...walk, archive }, (deleted) => {
    const workflows = applied.workflows + deleted;
    applied = { workflows, archived: archive ? workflows : 0 };
    onProgress?.(applied);
  });
  if (policy.history === undefined) return applied;
  applied = { ...applied, events: 0 };
  await pruneDue(operator, durationMs(policy.history), walk, (events) => {
    applied = { ...applied, events: (applied.events ?? 0) + events };
    onProgress?.(applied);
  });
  return applied;
}

/** Workflows that are due: created before a time, of this application, and picked by a rule. */
export interface Due {
  readonly before: number;
  readonly isDue: (workflow: AgedWorkflow) => boolean;
}

/** Deletes what is due and has ended, unless something needs it, and archives it before if there is an archive. */
export async function deleteDue(
  operator: Operator,
  due: Due,
  { archive, ...walk }: PaceOptions & { readonly archive?: Archive | undefined },
  onDeleted: (count: number) => void,
): Promise<void> {
  const { database, dataSources } = operator;
  const size = new PieceSize(walk.batchSize ?? BATCH_SIZE);
  await walkDue(operator, due, walk, async (found, pace) => {
    if (found.length === 0) return;
    // What is not deleted in the end need not be in the archive.
    const workflows = archive ? await pace.work(size, () => findDeletable(database, found)) : found;
    for await (const object of objectsOf(operator, { archive, pace, workflows })) {
      for (let first = 0; first < object.workflows.length;) {
        const piece = object.workflows.slice(first, first + size.limit);
        const deleted = await pace.work(size, () => deleteUnchanged(database, piece, object.name));
        await dataSources?.forgetDeleted(deleted);
        onDeleted(deleted.length);
        first += piece.length;
      }
    }
  });
}

interface ToDelete {
  readonly archive: Archive | undefined;
  readonly pace: Pace;
  readonly workflows: readonly SeenWorkflow[];
}

/** The objects that hold the copies of the workflows; without an archive, one without a name. */
async function* objectsOf(
  operator: Operator,
  { archive, pace, workflows }: ToDelete,
): AsyncGenerator<{ readonly name: string | undefined; readonly workflows: readonly SeenWorkflow[] }> {
  if (workflows.length === 0) return;
  if (archive) yield* archiveWorkflows(operator, { archive, pace, workflows });
  else yield { name: undefined, workflows };
}

/** Deletes the rows of the journal of workflows that are due. */
async function pruneDue(
  operator: Operator,
  keptForMs: number,
  walk: PaceOptions,
  onPruned: (events: number) => void,
): Promise<void> {
  const { database, applicationName } = operator;
  const { now } = await operator.retrying(() => readNow(database));
  onPruned(await prunePartitionsIfFree(operator, limitsOf(operator, now, keptForMs)));
  await walkDueRows(operator, { now, keptForMs }, walk, async (rows, before) => {
    const due = new Set(rows.map(({ workflowID }) => workflowID));
    onPruned(await pruneJournal(database, [...due], { before, applicationName }));
  });
}

function limitsOf({ applicationName }: Operator, now: number, keptForMs: number): PruneLimits {
  return { before: Math.ceil(now - keptForMs) + 1, applicationName };
}

/** Walks the journal from its oldest row on, up to where all are younger. */
async function walkDueRows(
  operator: Operator,
  { now, keptForMs }: { readonly now: number; readonly keptForMs: number },
  walk: PaceOptions,
  act: (due: readonly AgedRow[], before: number) => Promise<void>,
): Promise<void> {
  const { database } = operator;
  const limits = limitsOf(operator, now, keptForMs);
  await walkFrom<JournalCursor>(operator, { ...walk, first: FIRST_ROW }, async (after, limit) => {
    const found = await listRows(database, after, { ...limits, limit });
    const due = found.filter(({ isDue }) => isDue);
    if (due.length > 0) await act(due, limits.before);
    const isLast = found.length < limit || found.every(({ at }) => at >= limits.before);
    return isLast ? undefined : found.at(-1);
  });
}

/** Counts what `applyRetention` would delete, by workflow and status. */
export async function planRetention(
  operator: Operator,
  given: RetentionPolicy | undefined,
): Promise<PlannedRetention[]> {
  const { database } = operator;
  const policy = policyOf(operator, given);
  const plan = new Plan();
  const size = new PieceSize(BATCH_SIZE);
  const walk = { restFactor: REST_FACTORS[database.dialect.name] };
  await walkDue(operator, await dueBy(operator, policy), walk, async (due, pace) => {
    if (due.length === 0) return;
    const deletable = await pace.work(size, () => findDeletable(database, due));
    const ids = new Set(deletable.map(({ workflowID }) => workflowID));
    for (const group of groupsOf(due.filter(({ workflowID }) => ids.has(workflowID)))) {
      const groupIDs = group.map(({ workflowID }) => workflowID);
      const holdings = await pace.work(size, () => measureHoldings(database, groupIDs));
      const [{ name, status }] = group as [AgedWorkflow];
      const oldestEndedAt = Math.min(...group.map(({ endedAt }) => endedAt));
      plan.add({ name, status, workflows: group.length, ...holdings, oldestEndedAt });
    }
  });
  if (policy.history !== undefined) await planPruning(operator, policy, plan);
  return plan.rows.sort((a, b) => b.workflows - a.workflows);
}

/** Adds the stored events of workflows that the policy keeps longer than their events. */
async function planPruning(operator: Operator, policy: RetentionPolicy, plan: Plan): Promise<void> {
  const { now } = await operator.retrying(() => readNow(operator.database));
  await walkDueRows(operator, { now, keptForMs: durationMs(policy.history ?? 0) }, {}, async (rows) => {
    for (const { name, status, endedAt } of rows) {
      if (status === null || endedAt === null) continue;
      const ms = keptMs(policy, { name, status });
      if (ms !== undefined && endedAt <= now - ms) continue;
      plan.add({ name, status, workflows: 0, characters: 0, events: 1, oldestEndedAt: endedAt });
    }
  });
}

/** Sums by name and status. */
class Plan {
  readonly #rows = new Map<string, PlannedRetention>();

  get rows(): PlannedRetention[] {
    return [...this.#rows.values()];
  }

  add(more: PlannedRetention): void {
    const key = keyOf(more);
    const known = this.#rows.get(key);
    this.#rows.set(key, {
      name: more.name,
      status: more.status,
      workflows: more.workflows + (known?.workflows ?? 0),
      characters: more.characters + (known?.characters ?? 0),
      events: more.events + (known?.events ?? 0),
      oldestEndedAt: Math.min(more.oldestEndedAt, known?.oldestEndedAt ?? Infinity),
    });
  }
}

function keyOf({ name, status }: Pick<PlannedRetention, 'name' | 'status'>): string {
  return JSON.stringify([name, status]);
}

function groupsOf(workflows: readonly AgedWorkflow[]): AgedWorkflow[][] {
  const groups = new Map<string, AgedWorkflow[]>();
  for (const workflow of workflows) {
    const group = groups.get(keyOf(workflow)) ?? [];
    groups.set(keyOf(workflow), group);
    group.push(workflow);
  }
  return [...groups.values()];
}

function policyOf({ retention }: Operator, given: RetentionPolicy | undefined): RetentionPolicy {
  const policy = given === undefined ? retention : retentionPolicy.read(given, 'policy');
  if (policy) return policy;
  throw new DBOSInvalidArgumentError('No retention is configured. Pass a policy, or set retention.', 'policy');
}

/** What has ended longer ago than the policy keeps it. */
async function dueBy(operator: Operator, policy: RetentionPolicy): Promise<Due> {
  const { now } = await operator.retrying(() => readNow(operator.database));
  const isDue = (workflow: AgedWorkflow): boolean => {
    const ms = keptMs(policy, workflow);
    return ms !== undefined && workflow.endedAt <= now - ms;
  };
  return { before: Math.ceil(now - (shortestKeptMs(policy) ?? Infinity)) + 1, isDue };
}

/** Walks what is due, oldest first. `act` works at the pace of the walk. */
async function walkDue(
  operator: Operator,
  { before, isDue }: Due,
  { batchSize = BATCH_SIZE, ...walk }: PaceOptions,
  act: (due: readonly AgedWorkflow[], pace: Pace) => Promise<void>,
): Promise<void> {
  const { database, applicationName } = operator;
  if (before === -Infinity) return;
  const pace = new Pace(operator, walk);
  const size = new PieceSize(batchSize);
  for (let after: AgeCursor | undefined = OLDEST; after !== undefined;) {
    const range: Omit<AgeRange, 'limit'> = { after, before };
    const { limit } = size;
    const oldest = await pace.work(size, () => listByAge(database, { ...range, limit }, applicationName));
    await act(
      oldest.filter((workflow) => workflow.isOwn && isDue(workflow)),
      pace,
    );
    after = oldest.length < limit ? undefined : oldest.at(-1);
  }
}
