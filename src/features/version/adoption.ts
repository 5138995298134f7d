// Takes over what DBOS has left in flight, or leaves to DBOS what Everstep has, once the operator has declared the processes
// gone.
import { type Operator, queryTimeoutMs } from '../../operator/operator.js';
import { type Adopted, adoptIfLeft, type AdoptableGroup, type AdoptionFilter, countAdoptable } from './adoption.sql.js';
import { announceQueued } from '../../operator/announcements.js';

/** Rows per statement. */
const ROWS_MAX = 500;

type Filter = Omit<AdoptionFilter, 'applicationName'>;

/** What could be taken over, by executor and version. */
export function findAdoptable(operator: Operator, filter: Filter): Promise<AdoptableGroup[]> {
  const { applicationName, database } = operator;
  return operator.retrying(() => countAdoptable(database, { ...filter, applicationName }, queryTimeoutMs(operator)));
}

/** Puts it back on its queues, for the version that is to run it. Returns the number of workflows. */
export async function adoptWorkflows(operator: Operator, filter: Filter): Promise<number> {
  const { applicationName, bus } = operator;
  let count = 0;
  for (;;) {
    const adopted: Adopted[] = await operator.retrying(() =>
      adoptIfLeft(operator.database, { ...filter, applicationName }, ROWS_MAX),
    );
    if (adopted.length === 0) return count;
    announceQueued(bus, adopted);
    count += adopted.length;
  }
}
