// Forks: copies of workflows that continue from one of their steps, under new IDs.
import { DBOSNonExistentWorkflowError, DBOSWorkflowIDInUseError } from '../../kernel/errors/errors.js';
import { idents, nowMs, oneOf, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { stepColumns } from '../../database/columns.js';
import type { Database, Executor } from '../../database/database.js';
import { type ChangeNote, noted } from '../history/notes.sql.js';
import { creatorName, selectedCreator } from '../../database/lacking.js';
import { seenStatus } from '../parking/parked.sql.js';

/** A fork to create. */
export interface Fork {
  readonly originalID: string;
  /** Chosen before the write, so that a retry finds the fork. */
  readonly workflowID: string;
  /** The first step that it executes. */
  readonly startStep: number;
  /** A token of the call, to recognise its row. */
  readonly creator: string;
}

export interface ForkSettings {
  readonly queueName: string;
  readonly partitionKey: string | null;
  /** Null keeps the original's. */
  readonly applicationVersion: string | null;
  /** For forks of workflows without an application. */
  readonly applicationName: string | null;
  readonly timeoutMs: number | null;
  /** Child IDs to replace in the copied checkpoints. */
  readonly replacementChildren: ReadonlyMap<string, string>;
  readonly note?: ChangeNote;
}

const workflows = table('workflow_status');
const steps = table('operation_outputs');
const streams = table('streams');
const events = table('workflow_events');
const history = table('workflow_events_history');

/**
 * Creates all forks in one commit, or none. Skips forks that an earlier attempt of the same call created. Checkpoints,
 * streams and events are copied from one snapshot, without a lock on the originals: those that run go on. If an original
 * has changed its state meanwhile, the commit fails with a serialization failure.
 */
export async function insertForks(database: Database, forks: readonly Fork[], settings: ForkSettings): Promise<void> {
  const originalIDs = [...new Set(forks.map(({ originalID }) => originalID))];
  const copy = async (tx: Executor): Promise<void> => {
    const inserted = await noted(tx, settings.note, () => tx.run(insertRows(forks, settings)));
    const insertedIDs = new Set(inserted.map((row) => row['workflow_uuid']));
    if (insertedIDs.size < forks.length) {
      await judgeMissing(
        tx,
        forks.filter(({ workflowID }) => !insertedIDs.has(workflowID)),
      );
    }
    const copied = forks.filter(({ workflowID, startStep }) => startStep > 0 && insertedIDs.has(workflowID));
    if (copied.length === 0) return;
    // Not in slices: on SQLite the file would stay locked while other code of the process runs. If that writes to the file
    // by a connection of its own, it blocks the thread, and with it the end of this transaction.
    const statements = [copySteps(copied, settings), copyStreams(copied), copyHistory(copied), copyEvents(copied)];
    for (const statement of statements) await tx.run(statement);
  };
  await database.transaction(
    async (tx) => {
      await copy(tx);
      // Last, because it locks the originals.
      await tx.run(sql`
        UPDATE ${workflows}
        SET was_forked_from = TRUE
        WHERE workflow_uuid ${oneOf(originalIDs)} AND was_forked_from = FALSE`);
    },
    { isSnapshot: true },
  );
}

const forkColumns = [
  { name: 'original_id', type: 'text' },
  { name: 'new_id', type: 'text' },
  { name: 'start_step', type: 'int' },
  { name: 'creator', type: 'text' },
] as const;

function forkRows(forks: readonly Fork[]) {
  const data = forks.map(({ originalID, workflowID, startStep, creator }) => [
    originalID,
    workflowID,
    startStep,
    creator,
  ]);
  return rows('r', forkColumns, data);
}

function insertRows(forks: readonly Fork[], settings: ForkSettings): Sql {
  const { queueName, partitionKey, applicationVersion, applicationName, timeoutMs } = settings;
  return sql`
    INSERT INTO ${workflows}
      (workflow_uuid, status, name, class_name, config_name, inputs, serialization, authenticated_user, assumed_role,
       authenticated_roles, attributes, executor_id, application_id, application_version, application_name,
       workflow_timeout_ms, queue_name, queue_partition_key, priority, recovery_attempts, forked_from, ${creatorName},
       created_at, updated_at)
    SELECT r.new_id, 'ENQUEUED', w.name, w.class_name, w.config_name, COALESCE(i.inputs, w.inputs), w.serialization,
      w.authenticated_user, w.assumed_role, w.authenticated_roles, w.attributes, '', '',
      COALESCE(${applicationVersion}, w.application_version), COALESCE(w.application_name, ${applicationName}),
      CAST(${timeoutMs} AS BIGINT), ${queueName}, ${partitionKey}, 0, 0, w.workflow_uuid, r.creator, t.now, t.now
    FROM ${forkRows(forks)}
    JOIN ${workflows} AS w ON w.workflow_uuid = r.original_id
    LEFT JOIN ${table('workflow_input')} AS i ON i.workflow_uuid = r.original_id
    CROSS JOIN (SELECT ${nowMs} AS now) AS t
    WHERE TRUE
    ON CONFLICT DO NOTHING
    RETURNING workflow_uuid`;
}

/** Throws unless an earlier attempt of the call created each of the forks. */
async function judgeMissing(tx: Executor, missing: readonly Fork[]): Promise<void> {
  const found = await tx.run(sql`
    SELECT workflow_uuid, ${selectedCreator}, ${seenStatus('w')} AS status, name
    FROM ${workflows} AS w
    WHERE w.workflow_uuid ${oneOf(missing.map(({ workflowID }) => workflowID))}`);
  const existing = new Map(found.map((row) => [row['workflow_uuid'], row]));
  for (const { workflowID, originalID, creator } of missing) {
    const row = existing.get(workflowID);
    if (!row) throw new DBOSNonExistentWorkflowError(`Workflow ${originalID} does not exist`);
    if (row['creator_xid'] === creator) continue;
    throw new DBOSWorkflowIDInUseError(workflowID, row['status'] as string, row['name'] as string);
  }
}

const childColumns = [
  { name: 'old_id', type: 'text' },
  { name: 'new_id', type: 'text' },
] as const;

const passedStepColumns = stepColumns.columns
  .map(({ name }) => name)
  .filter((name) => name !== 'workflow_uuid' && name !== 'child_workflow_id');

function copySteps(forks: readonly Fork[], { replacementChildren }: ForkSettings): Sql {
  const children = rows('c', childColumns, [...replacementChildren]);
  return sql`
    INSERT INTO ${steps} (workflow_uuid, child_workflow_id, ${idents(passedStepColumns)})
    SELECT r.new_id, COALESCE(c.new_id, o.child_workflow_id), ${idents(passedStepColumns, 'o')}
    FROM ${forkRows(forks)}
    JOIN ${steps} AS o ON o.workflow_uuid = r.original_id AND o.function_id < r.start_step
    LEFT JOIN ${children} ON c.old_id = o.child_workflow_id`;
}

/** Renumbers the offsets: concurrent steps may have written in any order. */
function copyStreams(forks: readonly Fork[]): Sql {
  return sql`
    INSERT INTO ${streams} (workflow_uuid, key, "offset", value, function_id, serialization)
    SELECT r.new_id, s.key, ROW_NUMBER() OVER (PARTITION BY r.new_id, s.key ORDER BY s."offset") - 1, s.value,
      s.function_id, s.serialization
    FROM ${forkRows(forks)}
    JOIN ${streams} AS s ON s.workflow_uuid = r.original_id AND s.function_id < r.start_step`;
}

function copyHistory(forks: readonly Fork[]): Sql {
  return sql`
    INSERT INTO ${history} (workflow_uuid, function_id, key, value, serialization)
    SELECT r.new_id, h.function_id, h.key, h.value, h.serialization
    FROM ${forkRows(forks)}
    JOIN ${history} AS h ON h.workflow_uuid = r.original_id AND h.function_id < r.start_step`;
}

/** Sets the forks' events from their copied history. */
function copyEvents(forks: readonly Fork[]): Sql {
  return insertLatestEvents(forks.map(({ workflowID }) => workflowID));
}

/** Sets the events of workflows without any to the latest values in their history. */
export function insertLatestEvents(workflowIDs: readonly string[]): Sql {
  return sql`
    INSERT INTO ${events} (workflow_uuid, key, value, serialization)
    SELECT h.workflow_uuid, h.key, h.value, h.serialization
    FROM ${history} AS h
    WHERE h.workflow_uuid ${oneOf(workflowIDs)} AND NOT EXISTS (
      SELECT 1
      FROM ${history} AS l
      WHERE l.workflow_uuid = h.workflow_uuid AND l.key = h.key AND l.function_id > h.function_id)`;
}

/** Which step to continue from. */
export type StartChoice =
  { readonly kind: 'last-failure' } | { readonly kind: 'last-step' } | { readonly kind: 'name'; readonly name: string };

/**
 * The chosen step of each workflow. 'last-failure' is the last failed step, or the last step if none failed. Workflows
 * without such a step are omitted.
 */
export async function findStartSteps(
  database: Database,
  workflowIDs: readonly string[],
  choice: StartChoice,
): Promise<Map<string, number>> {
  const condition = choice.kind === 'name' ? sql`AND o.function_name = ${choice.name}` : sql``;
  const found = await database.read(sql`
    SELECT o.workflow_uuid, MAX(o.function_id) AS last, MAX(CASE WHEN o.error IS NOT NULL THEN o.function_id END) AS failed
    FROM ${steps} AS o
    WHERE o.workflow_uuid ${oneOf(workflowIDs)} ${condition}
    GROUP BY o.workflow_uuid`);
  return new Map(
    found.map((row) => {
      const step = choice.kind === 'last-failure' ? (row['failed'] ?? row['last']) : row['last'];
      return [row['workflow_uuid'] as string, step as number];
    }),
  );
}
