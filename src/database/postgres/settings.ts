// Settings of the server. Those of our sessions are made by a statement: some poolers refuse startup options, and others drop
// them silently. In sessions that are not ours, they are made for each commit. Those of one transaction are part of a SELECT
// at its head, and end with it.
import { setting, type Sql, sql, type Token } from '../../kernel/sql/sql.js';
import type { CommitOptions, ObserveOptions } from '../database.js';
import type { ServerFeature } from './server-probe.js';
import { SERVER, TIMELINE } from './timelines.js';

/**
 * All our statements are small index lookups. A plan made while a table was tiny would scan it, and the server keeps the
 * plan of a prepared statement long after the table has grown.
 */
const PLANNER_SETTINGS = {
  // Our statements are too small to compile, but the costs of disabled nodes would make the server try.
  jit: 'off',
  enable_seqscan: 'off',
  // A bitmap scan reads the whole backlog before it returns the first row.
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
} as const;

/** What statements rely on, whatever the role, the database or a pool has set. */
const RELIED_ON = {
  // Work waits for the database; a role's limits for interactive statements must not fail it.
  statement_timeout: '0',
  lock_timeout: '0',
  standard_conforming_strings: 'on',
} as const;

const SESSION_SETTINGS = {
  ...PLANNER_SETTINGS,
  ...RELIED_ON,
  transaction_timeout: '0',
  idle_session_timeout: '0',
  // After waiting for an advisory lock, a statement must see what earlier holders committed.
  default_transaction_isolation: 'read committed',
} as const;

/** An expression: `off` becomes `on`. Work continues on what is committed, and would not find it after a crash of the server. */
const FLUSHED = `CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END`;

const WITHOUT_TRIGGERS = `current_setting('session_replication_role', TRUE) = 'replica'`;

const IDLE_TRANSACTION_TIMEOUT_MS = 60_000;

export interface SessionOptions {
  /** Ends sessions that are idle in a transaction for this long; 0 keeps the server's setting. */
  readonly idleTransactionTimeoutMs?: number;
  /** Startup options in the user's URL. They win. */
  readonly urlOptions?: string;
  /** Those that were taken from it because the server refuses them. */
  readonly startupOptions?: string;
  /** What the server was found to lack. */
  readonly lacking?: ReadonlySet<ServerFeature>;
}

/** As `sessionLookup`, and sets up the session. Leaves out what the server lacks. */
export function sessionSetup(options: SessionOptions): string {
  const { idleTransactionTimeoutMs = IDLE_TRANSACTION_TIMEOUT_MS, urlOptions = '', startupOptions = '' } = options;
  const settings = Object.entries<string>(SESSION_SETTINGS);
  if (idleTransactionTimeoutMs > 0) {
    settings.push(['idle_in_transaction_session_timeout', String(idleTransactionTimeoutMs)]);
  }
  const given = new Map([...settings, ...settingsIn(startupOptions)]);
  const inURL = new Set(settingsIn(urlOptions).map(([name]) => name));
  for (const name of inURL) given.delete(name);
  const values = [...given].map(([name, value]) => `('${name}', '${value.replaceAll("'", "''")}')`);
  if (!given.has('synchronous_commit') && !inURL.has('synchronous_commit'))
    values.push(`('synchronous_commit', ${FLUSHED})`);
  // The last disables the triggers that notify for other programs: we notify outside the commits.
  return `
    ${sessionLookup(options)},
      (SELECT count(set_config(s.name, v.value, FALSE))
       FROM (VALUES ${values.join(', ')}) AS v(name, value) JOIN pg_catalog.pg_settings AS s ON s.name = v.name),
      set_config('everstep.quiet', 'on', FALSE)`;
}

/** The settings in startup options: `-c name=value` or `--name=value`, with a backslash before spaces in a value. */
function settingsIn(startupOptions: string): [name: string, value: string][] {
  return [...startupOptions.matchAll(/(?:-c\s*|--)([\w.-]+)\s*=((?:\\.|[^\s\\])*)/g)].map(
    ([, name = '', value = '']) => [name, value.replace(/\\(.)/g, '$1')],
  );
}

/** The server's process, as `backend`, the `server`, as `Timelines` take it, and whether it calls no triggers. */
export function sessionLookup({ lacking }: Pick<SessionOptions, 'lacking'>): string {
  const known = lacking?.has('system identifiers') ? TIMELINE : SERVER;
  const server = lacking?.has('timelines') ? 'NULL' : known;
  const triggers = lacking?.has('session settings') ? '' : `, ${WITHOUT_TRIGGERS} AS is_without_triggers`;
  return `SELECT pg_backend_pid() AS backend, ${server} AS server${triggers}`;
}

/** For one commit in a session that is not ours, before anything else in it. Not in an open transaction. */
export const foreignIsolation = sql`SET transaction_isolation TO 'read committed'`;

const flushed: Token = {
  shape: 'flushed;',
  write: (out) => out.text(out.dialect.hasSettings ? `set_config('synchronous_commit', ${FLUSHED}, TRUE)` : 'NULL'),
  collect: () => {},
};

/** The settings for one commit in a session that is not ours; no notifications by triggers. */
export const foreignSettings = sql`SELECT ${Object.entries({
  ...PLANNER_SETTINGS,
  ...RELIED_ON,
  'everstep.quiet': 'on',
})
  .map(([name, value]): Sql => sql`${setting(name, value)}`)
  .reduce((all, one) => sql`${all}, ${one}`, sql`${flushed}`)}`;

/**
 * What a commit needs. If it limits its wait for locks, there is no other limit: the role may have a statement timeout. A
 * relaxed commit is flushed by a later one, or by the server within a second.
 */
export function commitSettings({ lockTimeoutMs, relaxed }: CommitOptions): Sql | undefined {
  const settings = [
    ...(relaxed ? [withoutDisk] : []),
    ...(lockTimeoutMs === undefined ? [] : [lockSettings(lockTimeoutMs)]),
  ];
  return settings.length === 0 ? undefined : settings.reduce((all, one) => sql`${all}, ${one}`);
}

const withoutDisk = sql`${setting('synchronous_commit', 'off')}`;

function lockSettings(timeoutMs: number): Sql {
  return sql`${setting('statement_timeout', '0')}, ${setting('lock_timeout', String(timeoutMs))}`;
}

/** What a transaction needs that reads whole tables. */
export const ALL_SCANS = sql`
  SELECT ${setting('enable_seqscan', 'on')}, ${setting('enable_bitmapscan', 'on')}`;

/** What an ad-hoc query needs. */
export function observeSettings({ timeoutMs, scans }: ObserveOptions): Sql {
  const ifAll = scans === 'all' ? 'on' : 'off';
  return sql`
    SELECT ${setting('statement_timeout', String(timeoutMs))},
      ${setting('enable_seqscan', ifAll)},
      ${setting('enable_bitmapscan', scans === 'index' ? 'off' : 'on')},
      ${setting('enable_hashjoin', ifAll)},
      ${setting('jit', 'off')}`;
}
