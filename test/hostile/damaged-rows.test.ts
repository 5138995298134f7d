// Rows that other programs, or a damaged file, have left with values that no column should have. Each is the trouble of its
// own workflow, queue or schedule: the next process launches, serves all others, and does not work on the broken ones over
// and over.
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import { createAdmin } from '../../src/faces/http/admin.js';
import { callerOf, TOKEN } from '../faces/http/scene.js';
import { call } from '../faces/cli/terminals.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';

/** SQL literals that a column of a type may hold. SQLite stores any of them in any column. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  sqlite: ['NULL', "x'ff'", "'text'", '\'{"a":\'', '1.5', '9223372036854775807', '-9223372036854775808'],
  text: ['NULL', "'text'", "''", '\'{"a":\'', "'5'", "repeat('x', 5000)", "E'\\u0001\\U0001F600'"],
  'character varying': ['NULL', "'text'", "''"],
  bigint: ['NULL', '0', '-1', '9223372036854775807', '-9223372036854775808'],
  integer: ['NULL', '0', '-1', '2147483647', '-2147483648'],
  boolean: ['NULL', 'TRUE', 'FALSE'],
  'double precision': ['NULL', '-1', '0', '1e300', "'NaN'", "'Infinity'"],
  numeric: ['NULL', '0', '-1', '99999999999999999999'],
  json: ['NULL', '\'"x"\'', "'[]'", "'5'", '\'{"a": {}}\''],
  jsonb: ['NULL', '\'"x"\'', "'[]'", "'5'", '\'{"a": {}}\''],
  xid8: ["'1'", "'99999999999'"],
  uuid: ['NULL', 'gen_random_uuid()'],
};

interface Cell {
  readonly table: string;
  readonly column: string;
  readonly value: string;
}

/** A connection without the checks and triggers of the product. */
interface Raw {
  columnsOf(table: string): Promise<readonly { readonly name: string; readonly type: string }[]>;
  tables(): Promise<string[]>;
  /** False if the database refuses it. */
  tryTo(text: string): Promise<boolean>;
  /** Puts the triggers back. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

async function openRaw(url: string): Promise<Raw> {
  if (url.startsWith('sqlite')) {
    const database = new BetterSqlite3(url.replace('sqlite:///', ''));
    database.pragma('foreign_keys = OFF');
    const triggers = database.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all() as {
      name: string;
      sql: string;
    }[];
    for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`);
    return {
      columnsOf: async (table) =>
        database.prepare(`SELECT name, 'sqlite' AS type FROM pragma_table_info('${table}')`).all() as never,
      tables: async () =>
        (
          database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'").all() as {
            name: string;
          }[]
        ).map(({ name }) => name),
      tryTo: async (text) => {
        try {
          return database.prepare(text).run().changes > 0;
        } catch {
          return false;
        }
      },
      restore: async () => {
        for (const { sql } of triggers) database.exec(sql);
      },
      close: async () => void database.close(),
    };
  }
  const client = new pg.Client({
    connectionString: url,
    options: '-c search_path=dbos -c session_replication_role=replica',
  });
  await client.connect();
  return {
    columnsOf: async (table) =>
      (
        await client.query<{ name: string; type: string }>(
          'SELECT column_name AS name, data_type AS type FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2 AND is_generated = $3',
          ['dbos', table, 'NEVER'],
        )
      ).rows,
    tables: async () =>
      (
        await client.query<{ name: string }>(
          "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'dbos' AND table_type = 'BASE TABLE'",
        )
      ).rows.map(({ name }) => name),
    tryTo: async (text) =>
      client.query(text).then(
        ({ rowCount }) => (rowCount ?? 0) > 0,
        () => false,
      ),
    // They are off in this session alone.
    restore: async () => {},
    close: () => client.end(),
  };
}

/** The versions of the schema. Nothing launches on another one. */
const VERSIONS = new Set(['dbos_migrations', 'everstep_migrations']);

function app(DBOS: DBOSInstance) {
  const good = DBOS.registerWorkflow(async (n: number) => DBOS.runStep(async () => n, { name: 'step' }), {
    name: 'good',
  });
  const waits = DBOS.registerWorkflow(
    async (n: number) => {
      await DBOS.runStep(async () => n, { name: 'step' });
      await DBOS.setEvent('k', n);
      await DBOS.writeStream('s', n);
      return DBOS.recv('go', 3600);
    },
    { name: 'waits' },
  );
  const scheduled = DBOS.registerWorkflow(async (_: Date, __: unknown) => {}, { name: 'scheduled' });
  return { good, waits, scheduled };
}

const CONFIG = { applicationVersion: 'v1', executorID: 'one', history: 'full' } as const;

/** A database with a workflow for each number, with what the tables are about, and with another workflow. */
async function prepare(dialect: TestDialect, tables: readonly string[], count: number): Promise<string> {
  const { DBOS, url } = await createEngine(dialect, CONFIG);
  const { good, waits, scheduled } = app(DBOS);
  await DBOS.launch();
  await DBOS.registerQueue('q');
  const handles = await DBOS.startWorkflows(
    waits,
    Array.from({ length: count }, (_, n) => ({ args: [n] as [number], workflowID: `w${n}` })),
    { queueName: 'q' },
  );
  const control = await DBOS.startWorkflow(waits, { workflowID: 'control', queueName: 'q' })(-1);
  await Promise.all([...handles, control].map(({ workflowID }) => DBOS.getEvent(workflowID, 'k', 60)));
  const each = (body: (n: number) => Promise<unknown>) => Promise.all(Array.from({ length: count }, (_, n) => body(n)));
  if (tables.includes('notifications')) await each((n) => DBOS.send(`w${n}`, n, 'other'));
  if (tables.includes('queues')) {
    await each((n) => DBOS.registerQueue(`q${n}`, { concurrency: 3, rateLimit: { limitPerPeriod: 5, periodSec: 60 } }));
  }
  if (tables.includes('workflow_schedules')) {
    await each((n) =>
      DBOS.createSchedule({ scheduleName: `s${n}`, workflowFn: scheduled, schedule: '0 0 1 1 *', context: { n } }),
    );
  }
  await (await DBOS.startWorkflow(good, { workflowID: 'ended' })(1)).getResult();
  await DBOS.shutdown();
  return url;
}

async function cellsOf(raw: Raw, tables: readonly string[]): Promise<Cell[]> {
  const cells = [];
  for (const table of tables) {
    for (const { name: column, type } of await raw.columnsOf(table)) {
      for (const value of VALUES[type] ?? ['NULL']) cells.push({ table, column, value });
    }
  }
  return cells;
}

/** Where the rows of a table are that belong to workflow, queue or schedule number `n`, and how to add one. */
interface Place {
  readonly column: string;
  readonly value: (n: number) => string;
  readonly insert?: (n: number) => string;
}

const FAR = 99_999_999_999_999;
const workflow = (n: number): string => `'w${n}'`;
const scheduleID = (n: number): string => `(SELECT schedule_id FROM workflow_schedules WHERE schedule_name = 's${n}')`;
/** The tables, in groups that are examined together. */
const PLACES: Readonly<Record<string, Readonly<Record<string, Place>>>> = {
  workflows: {
    workflow_status: { column: 'workflow_uuid', value: workflow },
  },
  'what workflows have stored': {
    operation_outputs: { column: 'workflow_uuid', value: workflow },
    notifications: { column: 'destination_uuid', value: workflow },
    workflow_events: { column: 'workflow_uuid', value: workflow },
    workflow_events_history: { column: 'workflow_uuid', value: workflow },
    streams: { column: 'workflow_uuid', value: workflow },
    step_attempts: {
      column: 'workflow_uuid',
      value: workflow,
      insert: (n) =>
        `INSERT INTO step_attempts (workflow_uuid, function_id, attempts, retry_at_epoch_ms, errors) VALUES ('w${n}', 0, 1, 1, '[]')`,
    },
    workflow_input: {
      column: 'workflow_uuid',
      value: workflow,
      insert: (n) =>
        `INSERT INTO workflow_input (workflow_uuid, inputs, retention_timestamp) VALUES ('w${n}', '{}', 1)`,
    },
    workflow_output: {
      column: 'workflow_uuid',
      value: workflow,
      insert: (n) =>
        `INSERT INTO workflow_output (workflow_uuid, output, retention_timestamp) VALUES ('w${n}', '{}', 1)`,
    },
  },
  'what happened to workflows and what wakes them': {
    journal: { column: 'workflow_id', value: workflow },
    journal_epochs: {
      column: 'epoch',
      value: (n) => String(n + 100),
      insert: (n) => `INSERT INTO journal_epochs (epoch, cluster, after_seq) VALUES (${n + 100}, 'other', 0)`,
    },
    journal_timers: {
      column: 'workflow_id',
      value: workflow,
      insert: (n) => `INSERT INTO journal_timers (timer_id, workflow_id, fire_at) VALUES ('t${n}', 'w${n}', ${FAR})`,
    },
    journal_notes: {
      column: 'kind',
      value: (n) => `'n${n}'`,
      insert: (n) => `INSERT INTO journal_notes (kind, note) VALUES ('n${n}', '{}')`,
    },
    parked_waits: {
      column: 'workflow_uuid',
      value: workflow,
      insert: (n) =>
        `INSERT INTO parked_waits (wait_key, workflow_uuid, kind, awaited_uuid) VALUES ('message:w${n}::go', 'w${n}', 'message', 'w${n}')`,
    },
    parked_wakes: {
      column: 'wait_key',
      value: workflow,
      insert: (n) => `INSERT INTO parked_wakes (wait_key) VALUES ('w${n}')`,
    },
    event_dispatch_kv: {
      column: 'key',
      value: (n) => `'k${n}'`,
      insert: (n) =>
        `INSERT INTO event_dispatch_kv (service_name, workflow_fn_name, key, value) VALUES ('everstep.dead-letters', 'f', 'k${n}', '{}')`,
    },
    archived_workflows: {
      column: 'workflow_uuid',
      value: (n) => `'a${n}'`,
      insert: (n) =>
        `INSERT INTO archived_workflows (workflow_uuid, object_name, archived_at) VALUES ('a${n}', 'o', 1)`,
    },
  },
  'queues and schedules': {
    queues: { column: 'name', value: (n) => `'q${n}'` },
    paused_queues: {
      column: 'name',
      value: (n) => `'q${n}'`,
      insert: (n) => `INSERT INTO paused_queues (name, paused_at) VALUES ('q${n}', 1)`,
    },
    shared_queues: {
      column: 'name',
      value: (n) => `'q${n}'`,
      insert: (n) => `INSERT INTO shared_queues (name) VALUES ('q${n}')`,
    },
    slot_releasing_queues: {
      column: 'name',
      value: (n) => `'q${n}'`,
      insert: (n) => `INSERT INTO slot_releasing_queues (name) VALUES ('q${n}')`,
    },
    workflow_schedules: { column: 'schedule_name', value: (n) => `'s${n}'` },
    schedule_settings: {
      column: 'schedule_id',
      value: scheduleID,
      insert: (n) =>
        `INSERT INTO schedule_settings (schedule_id, overlap, jitter_ms) SELECT ${scheduleID(n)}, 'skip', 5 WHERE TRUE ON CONFLICT DO NOTHING`,
    },
    schedule_timers: { column: 'schedule_id', value: scheduleID },
  },
  processes: {
    executors: {
      column: 'incarnation_id',
      value: (n) => `'${incarnation(n)}'`,
      insert: (n) =>
        `INSERT INTO executors (incarnation_id, executor_id, application_name, application_version, host, pid, started_at, heartbeat_at, lease_until_epoch_ms, metadata)
        VALUES ('${incarnation(n)}', 'e${n}', 'test', 'v1', 'elsewhere', 1, 1, 1, ${n % 2 === 0 ? 1 : FAR}, '{}')`,
    },
    application_versions: {
      column: 'version_id',
      value: (n) => `'v${n}'`,
      insert: (n) =>
        `INSERT INTO application_versions (version_id, version_name, version_timestamp, created_at, application_name) VALUES ('v${n}', 'old${n}', ${n}, 1, 'test')`,
    },
    other_versions: {
      column: 'version_name',
      value: (n) => `'v${n}'`,
      insert: (n) => `INSERT INTO other_versions (version_name, application_name) VALUES ('v${n}', 'other')`,
    },
    change_counters: {
      column: 'topic',
      value: (n) => `'t${n}'`,
      insert: (n) => `INSERT INTO change_counters (topic, changes) VALUES ('t${n}', 1)`,
    },
    fenced_sessions: {
      column: 'session_key',
      value: (n) => String(n),
      insert: (n) => `INSERT INTO fenced_sessions (session_key, fenced_at) VALUES (${n}, 1)`,
    },
    system_identity: {
      column: 'key',
      value: (n) => `'i${n}'`,
      insert: (n) => `INSERT INTO system_identity (key, id) VALUES ('i${n}', 'id')`,
    },
  },
};
const TABLES: Readonly<Record<string, Place>> = Object.assign({}, ...Object.values(PLACES));

function incarnation(n: number): string {
  return `inc${n}`.padEnd(28, '0');
}

/** Damages the row of workflow, queue or schedule number `n`. */
async function damage(raw: Raw, { table, column, value }: Cell, n: number): Promise<boolean> {
  const place = TABLES[table];
  if (!place) throw new Error(`No place for ${table}`);
  if (place.insert) await raw.tryTo(place.insert(n));
  return raw.tryTo(`UPDATE ${table} SET "${column}" = ${value} WHERE "${place.column}" = ${place.value(n)}`);
}

/** The statements that the engine's database gets while the body runs. */
async function countStatements(DBOS: DBOSInstance, body: () => Promise<void>): Promise<number> {
  const { database } = engineOf(DBOS).runtime as unknown as {
    database: Record<string, (...args: unknown[]) => unknown>;
  };
  let count = 0;
  for (const method of ['run', 'read', 'observe', 'commit', 'transaction', 'exclusive']) {
    const original = database[method]?.bind(database);
    database[method] = (...args) => {
      count += 1;
      return original?.(...args);
    };
  }
  await body();
  return count;
}

async function drain(values: AsyncIterable<unknown>): Promise<void> {
  const iterator = values[Symbol.asyncIterator]();
  while (!(await iterator.next()).done);
}

const LISTS: Readonly<Record<string, (DBOS: DBOSInstance) => Promise<unknown>>> = {
  listWorkflows: (DBOS) => DBOS.listWorkflows({ loadInput: true, loadOutput: true }),
  listQueuedWorkflows: (DBOS) => DBOS.listQueuedWorkflows(),
  listQueues: (DBOS) => DBOS.listQueues(),
  listSchedules: (DBOS) => DBOS.listSchedules(),
  listApplicationVersions: (DBOS) => DBOS.listApplicationVersions(),
  getQueueStats: (DBOS) => DBOS.getQueueStats(),
  countWorkflows: (DBOS) => DBOS.countWorkflows(),
  exportWorkflows: (DBOS) => drain(DBOS.exportWorkflows({})),
  tailHistory: (DBOS) => drain(DBOS.tailHistory({ since: 0, follow: false })),
  getWorkflowAggregates: (DBOS) =>
    DBOS.getWorkflowAggregates({ groupByStatus: true, selectMaxQueueWaitMs: true, selectMaxTotalLatencyMs: true }),
  getStepAggregates: (DBOS) => DBOS.getStepAggregates({ groupByFunctionName: true, selectMaxDurationMs: true }),
  getMetrics: (DBOS) => DBOS.getMetrics('2020-01-01T00:00:00Z', '2040-01-01T00:00:00Z'),
};

const COMMANDS = [
  'workflow list',
  'workflow recent',
  'queue list',
  'schedule list',
  'version list',
  'retention plan --completed 30d',
];

/** Everything that shows many rows at once. Returns what failed. */
async function readLists(DBOS: DBOSInstance, url: string): Promise<string[]> {
  const failures: string[] = [];
  for (const [name, list] of Object.entries(LISTS)) {
    await list(DBOS).catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
  }
  const http = callerOf(createAdmin({ source: DBOS, token: TOKEN }).fetch);
  const { paths } = (await http('GET', '/api/v1/openapi.json')).body as { paths: Record<string, { get?: object }> };
  for (const [path, { get }] of Object.entries(paths)) {
    // Neither those of one row, nor the stream of changes.
    if (!get || path.includes('{') || path.endsWith('/events')) continue;
    const { status, body } = await http('GET', path.startsWith('/api') ? path : `/api/v1${path}`);
    if (status >= 500) failures.push(`GET ${path}: ${JSON.stringify(body)}`);
  }
  for (const line of COMMANDS) {
    const { exitCode, err } = await call(line, { environment: { DBOS_SYSTEM_DATABASE_URL: url } });
    if (exitCode !== 0) failures.push(`everstep ${line}: ${err}`);
  }
  return failures;
}

/** How the process has left its workflows: back on their queue, running in a process that is dead, or past their deadline. */
const LEFT = {
  'on their queue': '',
  'with a dead process': `UPDATE workflow_status
    SET status = 'PENDING', started_at_epoch_ms = 1, owner_xid = '${incarnation(0)}.1', executor_id = 'dead'
    WHERE status = 'ENQUEUED'`,
  overdue: `UPDATE workflow_status SET workflow_deadline_epoch_ms = 1 WHERE status = 'ENQUEUED' AND workflow_uuid <> 'control'`,
} as const;

/** Damages each cell of the tables with each value, each in a row of its own, and looks how the next process does. */
async function examine(dialect: TestDialect, group: string, left: keyof typeof LEFT): Promise<void> {
  const template = await openRaw(await dialect.createURL());
  const present = await template.tables();
  const tables = Object.keys(PLACES[group] ?? {}).filter((table) => present.includes(table));
  const cells = await cellsOf(template, tables);
  await template.close();
  const url = await prepare(dialect, tables, cells.length);
  const raw = await openRaw(url);
  onTestFinished(() => raw.close());
  if (LEFT[left] !== '') expect(await raw.tryTo(LEFT[left])).toBe(true);
  const damaged = new Set<string>();
  for (const [n, cell] of cells.entries()) if (await damage(raw, cell, n)) damaged.add(cell.table);
  expect([...damaged]).toEqual(tables);
  await raw.restore();

  const { DBOS } = await createEngine(dialect, { ...CONFIG, systemDatabaseUrl: url });
  const { good } = app(DBOS);
  await DBOS.launch();
  await DBOS.send('control', 'hello', 'go');
  expect(await DBOS.retrieveWorkflow('control').getResult()).toBe('hello');
  const statements = await countStatements(DBOS, async () => {
    for (let n = 0; n < GOOD; n += 1) {
      expect(await (await DBOS.startWorkflow(good, { queueName: 'q' })(n)).getResult()).toBe(n);
    }
  });
  // As many as without damaged rows, and not one each millisecond.
  expect(statements).toBeLessThan(10 * GOOD);
  expect(await readLists(DBOS, url)).toEqual([]);
  // Together with the damaged ones.
  const all = ['control', ...cells.map((_, n) => `w${n}`)];
  await DBOS.cancelWorkflows(all);
  await DBOS.deleteWorkflows(all);
  expect(await DBOS.getWorkflowStatus('control')).toBeNull();
}

const GOOD = 20;

forEachDialect((dialect) => {
  describe('a process serves all others', () => {
    test.each(Object.keys(LEFT) as (keyof typeof LEFT)[])('beside damaged workflows %s', (left) =>
      examine(dialect, 'workflows', left),
    );

    test.each(Object.keys(PLACES).filter((group) => group !== 'workflows'))('beside damaged rows about %s', (group) =>
      examine(dialect, group, 'with a dead process'),
    );
  });

  test('each table has a place here', async () => {
    const raw = await openRaw(await dialect.createURL());
    const tables = await raw.tables();
    await raw.close();

    expect(tables.filter((name) => !(name in TABLES) && !VERSIONS.has(name))).toEqual([]);
  });
});
