// Settings of the server for one transaction, as part of a SELECT at its head. They end with it.
import { type Sql, sql } from '../../sql/sql.js';
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

const withoutDisk = sql`set_config('synchronous_commit', 'off', TRUE)`;

function lockSettings(timeoutMs: number): Sql {
  return sql`set_config('statement_timeout', '0', TRUE), set_config('lock_timeout', ${String(timeoutMs)}, TRUE)`;
}

/** What a transaction needs that reads whole tables. */
export const ALL_SCANS = sql`
  SELECT set_config('enable_seqscan', 'on', TRUE), set_config('enable_bitmapscan', 'on', TRUE)`;

/** What an ad-hoc query needs. */
export function observeSettings({ timeoutMs, scans }: ObserveOptions): Sql {
  const ifAll = scans === 'all' ? 'on' : 'off';
  return sql`
    SELECT set_config('statement_timeout', ${String(timeoutMs)}, TRUE),
      set_config('enable_seqscan', ${ifAll}, TRUE),
      set_config('enable_bitmapscan', ${scans === 'index' ? 'off' : 'on'}, TRUE),
      set_config('enable_hashjoin', ${ifAll}, TRUE),
      set_config('jit', 'off', TRUE)`;
}
