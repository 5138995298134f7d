// Settings of the server for one transaction, as part of a SELECT at its head. They end with it.
import { setting, type Sql, sql } from '../../sql/sql.js';
import type { CommitOptions, ObserveOptions } from '../database.js';

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
