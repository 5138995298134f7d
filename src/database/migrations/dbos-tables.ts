// What a database lacks that only DBOS has migrated, so that a client can work on it and create nothing there.
import type { Lacking } from '../../kernel/sql/sql.js';
import type { Versions } from './versions.js';

/** The oldest version that clients work on: that of DBOS 4.27. */
const OLDEST = 108;

const OWN_TABLES = {
  executors:
    'incarnation_id TEXT, executor_id TEXT, application_name TEXT, application_version TEXT, host TEXT, pid INT, ' +
    'started_at BIGINT, heartbeat_at BIGINT, lease_until_epoch_ms BIGINT, metadata TEXT',
  paused_queues: 'name TEXT, paused_at BIGINT',
  other_versions: 'version_name TEXT, application_name TEXT',
  shared_queues: 'name TEXT, ahead INT, claimed_at BIGINT',
  schedule_settings: 'schedule_id TEXT, overlap TEXT, jitter_ms BIGINT',
  parked_waits: 'wait_key TEXT, workflow_uuid TEXT, kind TEXT, awaited_uuid TEXT, awaited_name TEXT',
  slot_releasing_queues: 'name TEXT',
  schedule_timers: 'schedule_id TEXT, due_at BIGINT, fire_at BIGINT, created_at BIGINT',
  step_attempts: 'workflow_uuid TEXT, function_id INT, attempts INT, retry_at_epoch_ms BIGINT, errors TEXT',
  change_counters: 'topic TEXT, changes BIGINT',
  system_identity: 'key TEXT, id TEXT',
  journal:
    'workflow_id TEXT, seq BIGINT, at BIGINT, xid XID8, event_type TEXT, step INT, attempt INT, executor TEXT, ' +
    'actor TEXT, details JSONB, key TEXT, owner TEXT, name TEXT, started_at BIGINT, completed_at BIGINT',
  journal_epochs: 'epoch INT, cluster TEXT, after_seq BIGINT',
  journal_events:
    'workflow_id TEXT, xid XID8, seq BIGINT, part INT, at BIGINT, event_type TEXT, step INT, attempt INT, executor TEXT, ' +
    'actor TEXT, details JSONB, completed_at BIGINT, owner TEXT, key TEXT',
  history:
    'workflow_id TEXT, phase INT, at BIGINT, step INT, part INT, seq BIGINT, event_type TEXT, attempt INT, executor TEXT, ' +
    'actor TEXT, details JSONB, payload_name TEXT, payload TEXT, serialization TEXT, key TEXT',
};

/** Shared tables and columns, by the version that adds them. */
const LATER_TABLES = [
  { version: 109, name: 'workflow_input', columns: 'workflow_uuid TEXT, inputs TEXT' },
  { version: 109, name: 'workflow_output', columns: 'workflow_uuid TEXT, output TEXT, error TEXT' },
];
const LATER_COLUMNS = [{ version: 123, name: 'creator_xid' }];

/** Undefined if Everstep has migrated the database, or if it is too old. */
export function lackingIn([shared, everstep]: Versions): Lacking | undefined {
  if (everstep > 0 || shared < OLDEST) return undefined;
  const later = LATER_TABLES.filter(({ version }) => version > shared);
  return {
    tables: new Map([
      ...Object.entries(OWN_TABLES).map(([name, columns]) => [name, emptyTable(columns)] as const),
      ...later.map(({ name, columns }) => [name, emptyTable(columns)] as const),
    ]),
    columns: new Set(LATER_COLUMNS.filter(({ version }) => version > shared).map(({ name }) => name)),
  };
}

function emptyTable(columns: string): string {
  const typed = columns.split(', ').map((column) => {
    const [name, type] = column.split(' ');
    return `CAST(NULL AS ${type}) AS ${name}`;
  });
  return `(SELECT ${typed.join(', ')} WHERE FALSE)`;
}
