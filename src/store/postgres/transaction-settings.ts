// Settings of the server for one transaction, as part of a SELECT at its head. They end with it.
import { type Sql, sql } from '../../sql/sql.js';
import type { CommitOptions, ObserveOptions } from '../database.js';

/** What a commit needs. A relaxed one is flushed by a later one, or by the server within a second. */
export function commitSettings({ presorted, relaxed }: CommitOptions): Sql | undefined {
  if (!relaxed) return presorted ? withoutSort : undefined;
  return presorted ? sql`${withoutDisk}, ${withoutSort}` : withoutDisk;
}

const withoutDisk = sql`set_config('synchronous_commit', 'off', TRUE)`;
const withoutSort = sql`set_config('enable_sort', 'off', TRUE)`;

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
