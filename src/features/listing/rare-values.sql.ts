// Which filters of lists have rare values. A list of a rare value reads the history until it has found a page of it, unless
// the filter has an index.
import { OPTIONAL_INDEXES, type OptionalIndex } from './index-fields.js';
import { ident, idents, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Reader } from '../../database/database.js';

/** The filters whose values have no other index. */
const EXAMINED: readonly OptionalIndex[] = [
  'queueName',
  'workflowName',
  'executorId',
  'applicationVersion',
  'authenticatedUser',
];
/** In a shorter history, no list reads much. */
const HISTORY_MIN = 100_000;
/** Workflows to look at, the newest. */
const NEWEST = 20_000;
/** A value that fewer of them have is rare: a page of 100 is found among 100,000 or more. */
const COMMON_MIN = 20;

const workflows = table('workflow_status');

/** The filters some of whose values are rare; none if the history is short. */
export async function findFiltersWithRareValues(database: Reader): Promise<OptionalIndex[]> {
  const [history] = await database.read(sql`
    SELECT COUNT(*) AS n FROM (SELECT 1 FROM ${workflows} AS w LIMIT ${HISTORY_MIN}) AS few`);
  if (Number(history?.['n']) < HISTORY_MIN) return [];
  const columns = EXAMINED.map((index) => OPTIONAL_INDEXES[index]);
  const [counts] = await database.read(sql`
    WITH newest AS MATERIALIZED (
      SELECT ${idents(columns, 'w')}
      FROM ${workflows} AS w
      ORDER BY w.created_at DESC
      LIMIT ${NEWEST})
    SELECT ${columns.map(rareValuesOf).reduce((list, one) => sql`${list}, ${one}`)}`);
  return EXAMINED.filter((index) => Number(counts?.[OPTIONAL_INDEXES[index]]) > 0);
}

/** How many values of the column are rare. */
function rareValuesOf(name: string): Sql {
  const column = ident(name);
  return sql`(
    SELECT COUNT(*)
    FROM (
      SELECT 1 FROM newest WHERE newest.${column} <> '' GROUP BY newest.${column} HAVING COUNT(*) < ${COMMON_MIN}
    ) AS rare) AS ${column}`;
}
