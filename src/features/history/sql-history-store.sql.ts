// `HistoryStore` on the tables of the system database, for both dialects. Its workflows are rows without an owner: no engine
// runs them, and readers of all kinds see them.
import { newID } from '../../kernel/base/ids.js';
import { DBOSNonExistentWorkflowError, DBOSWorkflowIDInUseError } from '../../kernel/errors/errors.js';
import { lock, nowMs, rows, searchableNowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Executor, Row } from '../../database/database.js';
import { cancellation } from '../../run/rows/lifecycle.js';
import type {
  AppendedEvent,
  Completion,
  Execution,
  ExecutionStatus,
  HistoryStore,
  NewExecution,
  StoredEvent,
  StoredTimer,
} from './history-store.sql.js';
import { eventOrder } from './history.sql.js';
import { noted } from './notes.sql.js';

const workflows = table('workflow_status');
const journal = table('journal');
const timers = table('journal_timers');

const LIST_MAX = 100;
const FORMAT = 'portable_json';
/** As in the view `workflow_executions`. */
const RESETS = sql`('AttemptLost', 'WorkflowResumed', 'WorkflowRewound', 'WorkflowTaskYielded', 'DelayChanged')`;

const selected = sql`
    SELECT w.workflow_uuid, COALESCE(w.creator_xid, w.workflow_uuid) AS run_id, w.name, w.inputs, w.output, w.error,
      w.created_at, w.completed_at,
      CASE
        WHEN w.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'RUNNING'
        WHEN w.status = 'SUCCESS' THEN 'COMPLETED'
        WHEN w.status <> 'CANCELLED' THEN 'FAILED'
        WHEN (
          SELECT j.event_type
          FROM ${journal} AS j
          WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
          ORDER BY j.seq DESC
          LIMIT 1) = 'WorkflowTimedOut' THEN 'TIMED_OUT'
        ELSE 'CANCELED' END AS state,
      1 + CASE w.status WHEN 'DELAYED' THEN 0 WHEN 'ENQUEUED' THEN 1 WHEN 'PENDING' THEN 2 ELSE 3 END + COALESCE((
        SELECT SUM(CASE WHEN j.event_type IN ${RESETS} THEN 4 ELSE 1 END)
        FROM ${journal} AS j
        WHERE j.workflow_id = w.workflow_uuid), 0) AS version
    FROM ${workflows} AS w`;

export class SqlHistoryStore implements HistoryStore {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async createWorkflow({ workflowID, name, input = null }: NewExecution): Promise<Execution> {
    const inputs = JSON.stringify({ positionalArgs: [input] });
    const inserted = await this.#database.run(sql`
      INSERT INTO ${workflows} (workflow_uuid, status, name, inputs, serialization, executor_id, creator_xid, priority,
        recovery_attempts, created_at, updated_at)
      SELECT ${workflowID}, 'PENDING', ${name}, ${inputs}, ${FORMAT}, '', ${newID()}, 0, 0, t.now, t.now
      FROM (SELECT ${nowMs} AS now) AS t
      WHERE TRUE
      ON CONFLICT DO NOTHING
      RETURNING workflow_uuid`);
    const execution = await this.getWorkflow(workflowID);
    if (inserted.length > 0 && execution) return execution;
    throw new DBOSWorkflowIDInUseError(workflowID, execution?.status ?? 'unknown', execution?.name ?? '');
  }

  async getWorkflow(workflowID: string): Promise<Execution | undefined> {
    const [row] = await this.#database.read(sql`${selected} WHERE w.workflow_uuid = ${workflowID}`);
    return row && toExecution(row);
  }

  async listWorkflows({
    status,
    limit = LIST_MAX,
  }: { readonly status?: ExecutionStatus; readonly limit?: number } = {}): Promise<Execution[]> {
    const found = await this.#database.read(sql`
      SELECT x.*
      FROM (${selected}) AS x
      WHERE ${status === undefined ? sql`TRUE` : sql`x.state = ${status}`}
      ORDER BY x.created_at DESC, x.workflow_uuid DESC
      LIMIT ${limit}`);
    return found.map(toExecution);
  }

  async completeWorkflow(workflowID: string, completion: Completion): Promise<boolean> {
    return this.#changing(workflowID, async (tx, execution) => {
      if (execution.status !== 'RUNNING') return false;
      if (completion.version !== undefined && completion.version !== execution.version) return false;
      const isTimeout = completion.status === 'TIMED_OUT';
      await noted(tx, { source: isTimeout ? 'deadline' : 'api' }, () =>
        tx.run(sql`UPDATE ${workflows} SET ${endOf(completion)} WHERE workflow_uuid = ${workflowID}`),
      );
      return true;
    });
  }

  async bumpVersion(workflowID: string, expected: number): Promise<number | undefined> {
    return this.#changing(workflowID, async (tx, { version }) => {
      if (version !== expected) return undefined;
      await tx.run(insertEvent(workflowID, 'VersionBumped', {}));
      return version + 1;
    });
  }

  async appendEvent(
    workflowID: string,
    { eventType, details = {} }: { readonly eventType: string; readonly details?: Readonly<Record<string, unknown>> },
  ): Promise<AppendedEvent> {
    // The lock makes events of one workflow wait for each other, so that none gets the number of another.
    return this.#changing(workflowID, async (tx) => {
      const [inserted] = await tx.run(insertEvent(workflowID, eventType, details));
      const [counted] = await tx.run(sql`
        SELECT COUNT(*) AS number FROM ${journal} AS j WHERE j.workflow_id = ${workflowID}`);
      // The start is an event as well.
      return { idx: Number(counted?.['number']) + 1, timestamp: new Date(Number(inserted?.['at'])) };
    });
  }

  async getHistory(workflowID: string): Promise<StoredEvent[]> {
    const found = await this.#database.read(sql`
      SELECT h.event_type, h.at, CAST(h.details AS TEXT) AS details
      FROM ${table('history')} AS h
      WHERE h.workflow_id = ${workflowID}
      ORDER BY h.phase, h.at, ${eventOrder}, h.part, h.seq`);
    return found.map((row, index) => ({
      workflowID,
      idx: index + 1,
      eventType: row['event_type'] as string,
      timestamp: new Date(Number(row['at'])),
      details: JSON.parse((row['details'] as string | null) ?? '{}') as Record<string, unknown>,
    }));
  }

  async insertTimer(timer: {
    readonly timerID: string;
    readonly workflowID: string;
    readonly fireAt: Date;
  }): Promise<void> {
    const { timerID, workflowID, fireAt } = timer;
    await this.#changing(workflowID, async (tx) => {
      const inserted = await tx.run(sql`
        INSERT INTO ${timers} (timer_id, workflow_id, fire_at)
        VALUES (${timerID}, ${workflowID}, ${fireAt.getTime()})
        ON CONFLICT DO NOTHING
        RETURNING timer_id`);
      const details = { timer_id: timerID, fire_at: fireAt.toISOString() };
      if (inserted.length > 0) await tx.run(insertEvent(workflowID, 'TimerScheduled', details));
    });
  }

  async fetchDueTimers(limit: number): Promise<StoredTimer[]> {
    // Uses idx_journal_timers_pending.
    return this.#fire(sql`
      WITH due AS MATERIALIZED (
        SELECT t.timer_id AS id
        FROM ${timers} AS t
        WHERE NOT t.fired AND t.fire_at <= ${searchableNowMs}
        ORDER BY t.fire_at
        LIMIT ${limit}
        ${lock('skip', 't')}
      )
      UPDATE ${timers}
      SET fired = TRUE
      FROM due
      WHERE timer_id = due.id AND NOT fired
      RETURNING timer_id, workflow_id, fire_at, created_at`);
  }

  async markTimerFired(timerID: string): Promise<boolean> {
    const fired = await this.#fire(sql`
      UPDATE ${timers}
      SET fired = TRUE
      WHERE timer_id = ${timerID} AND NOT fired
      RETURNING timer_id, workflow_id, fire_at, created_at`);
    return fired.length > 0;
  }

  async getPendingTimers(workflowID?: string): Promise<StoredTimer[]> {
    const found = await this.#database.read(sql`
      SELECT t.timer_id, t.workflow_id, t.fire_at, t.created_at
      FROM ${timers} AS t
      WHERE NOT t.fired AND ${workflowID === undefined ? sql`TRUE` : sql`t.workflow_id = ${workflowID}`}
      ORDER BY t.fire_at, t.timer_id`);
    return found.map(toTimer);
  }

  close(): Promise<void> {
    return this.#database.close();
  }

  /** Marks timers and adds their events in one commit: a crash in between would lose the wake-up. */
  #fire(statement: Sql): Promise<StoredTimer[]> {
    return this.#database.transaction(async (tx) => {
      const fired = (await tx.run(statement)).map(toTimer).sort((a, b) => a.fireAt.getTime() - b.fireAt.getTime());
      for (const { timerID, workflowID, fireAt } of fired) {
        await tx.run(insertEvent(workflowID, 'TimerFired', { timer_id: timerID, fired_at: fireAt.toISOString() }));
      }
      return fired;
    });
  }

  /** Runs the body with the workflow's row locked. */
  #changing<T>(workflowID: string, body: (tx: Executor, execution: Execution) => Promise<T>): Promise<T> {
    return this.#database.transaction(async (tx) => {
      await tx.run(sql`SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = ${workflowID} ${lock('update', 'w')}`);
      const [row] = await tx.run(sql`${selected} WHERE w.workflow_uuid = ${workflowID}`);
      if (!row) throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
      return body(tx, toExecution(row));
    });
  }
}

function endOf(completion: Completion): Sql {
  if (completion.status === 'CANCELED' || completion.status === 'TIMED_OUT') return cancellation;
  const ended = sql`updated_at = ${nowMs}, completed_at = ${nowMs}, deduplication_id = NULL`;
  return completion.status === 'COMPLETED'
    ? sql`status = 'SUCCESS', output = ${JSON.stringify(completion.result ?? null)}, ${ended}`
    : sql`status = 'ERROR', error = ${completion.error}, ${ended}`;
}

const EVENT_COLUMNS = [
  { name: 'workflow_id', type: 'text' },
  { name: 'event_type', type: 'text' },
  { name: 'details', type: 'json' },
] as const;

function insertEvent(workflowID: string, eventType: string, details: Readonly<Record<string, unknown>>): Sql {
  const data = [[workflowID, eventType, JSON.stringify(details)]];
  return sql`
    INSERT INTO ${journal} (workflow_id, at, event_type, details)
    SELECT r.workflow_id, ${nowMs}, r.event_type, r.details
    FROM ${rows('r', EVENT_COLUMNS, data)}
    WHERE TRUE
    RETURNING at`;
}

function toExecution(row: Row): Execution {
  const { positionalArgs = [] } = parsed(row['inputs'], {}) as { positionalArgs?: unknown[] };
  return {
    workflowID: row['workflow_uuid'] as string,
    runID: row['run_id'] as string,
    name: row['name'] as string,
    status: row['state'] as ExecutionStatus,
    input: positionalArgs[0] ?? null,
    result: parsed(row['output'], null),
    error: row['error'] as string | null,
    startTime: new Date(Number(row['created_at'])),
    endTime: row['completed_at'] === null ? null : new Date(Number(row['completed_at'])),
    version: Number(row['version']),
  };
}

/** Workflows of engines have values in other formats. */
function parsed(text: unknown, otherwise: unknown): unknown {
  if (typeof text !== 'string') return otherwise;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function toTimer(row: Row): StoredTimer {
  return {
    timerID: row['timer_id'] as string,
    workflowID: row['workflow_id'] as string,
    fireAt: new Date(Number(row['fire_at'])),
    createdAt: new Date(Number(row['created_at'])),
  };
}
