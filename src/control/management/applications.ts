// Giving an application another name, together with all that belongs to it.
import { DBOSError } from '../../model/errors/errors.js';
import { moveActive, moveAll, type MovedTable, moveRange, type Renaming } from '../../store/management/rename.js';
import { topics } from '../../store/notify/topics.js';
import type { Operator } from '../operator.js';

export interface ApplicationNames {
  /** Without one, only what belongs to no application is moved. */
  readonly oldName: string | undefined;
  readonly newName: string;
}

export interface RenameApplicationOptions {
  /** How many workflows or steps are moved in one commit; null moves everything in a single one. */
  readonly batchSize?: number | null;
  /** Moves what belongs to no application as well. */
  readonly adoptUnclaimedRows?: boolean;
}

/** What was moved. */
export interface ApplicationRowCounts {
  readonly queues: number;
  readonly schedules: number;
  readonly versions: number;
  readonly workflows: number;
  readonly steps: number;
}

const BATCH_SIZE = 10_000;
/** No index leads to the rows of an application. */
const ALL_SCANS = { scans: 'all' } as const;

/**
 * Moves queues, schedules, versions and workflows that have not ended in one commit, then all other workflows and the
 * steps. If it is interrupted, call it again. No process of the old name should run meanwhile.
 */
export async function renameApplication(
  operator: Operator,
  { oldName, newName }: ApplicationNames,
  { batchSize = BATCH_SIZE, adoptUnclaimedRows = false }: RenameApplicationOptions = {},
): Promise<ApplicationRowCounts> {
  checkNames(oldName, newName, adoptUnclaimedRows);
  if (batchSize !== null && !(Number.isSafeInteger(batchSize) && batchSize > 0)) {
    throw new DBOSError(`batchSize must be a positive whole number or null, but is ${batchSize}.`);
  }
  const renaming = { oldName: oldName ?? null, newName, withUnclaimed: adoptUnclaimedRows };
  const counts =
    batchSize === null ? await moveAtOnce(operator, renaming) : await moveInRanges(operator, renaming, batchSize);
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
  await operator.bus.publishAndWait(topics.schedules, ['']);
  return counts;
}

function checkNames(oldName: string | undefined, newName: string, adoptUnclaimedRows: boolean): void {
  if (oldName?.trim() === '') throw new DBOSError('The old name of the application must not be empty.');
  if (newName.trim() === '') throw new DBOSError('The new name of the application must not be empty.');
  if (oldName === undefined && !adoptUnclaimedRows) {
    throw new DBOSError('There is nothing to move: give the old name, or adoptUnclaimedRows, or both.');
  }
  if (oldName === newName) throw new DBOSError(`The application has the name "${newName}" already.`);
}

function moveAtOnce(operator: Operator, renaming: Renaming): Promise<ApplicationRowCounts> {
  return operator.retrying(() =>
    operator.database.transaction(async (tx) => {
      const active = await moveActive(tx, renaming);
      const ended = await moveAll(tx, 'workflow_status', renaming);
      const steps = await moveAll(tx, 'operation_outputs', renaming);
      return { ...active, workflows: active.workflows + ended, steps };
    }, ALL_SCANS),
  );
}

async function moveInRanges(operator: Operator, renaming: Renaming, size: number): Promise<ApplicationRowCounts> {
  const { database } = operator;
  const active = await operator.retrying(() => database.transaction((tx) => moveActive(tx, renaming), ALL_SCANS));
  const moveTable = async (name: MovedTable): Promise<number> => {
    let count = 0;
    for (let place: string | undefined = ''; place !== undefined;) {
      const after: string = place;
      const range = await operator.retrying(() => moveRange(database, name, { renaming, after, size }));
      count += range.moved;
      place = range.next;
    }
    return count;
  };
  const ended = await moveTable('workflow_status');
  return { ...active, workflows: active.workflows + ended, steps: await moveTable('operation_outputs') };
}
