// Renames an application with everything that belongs to it.
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { filledName, nullable, optional, positiveInteger } from '../../kernel/check/validation.js';
import { moveActive, moveAll, type MovedTable, moveRange, type Renaming } from './rename.sql.js';
import { topics } from '../../database/notify/topics.js';
import type { Operator } from '../../operator/operator.js';

export interface ApplicationNames {
  /** If omitted, only rows of no application are moved. */
  readonly oldName: string | undefined;
  readonly newName: string;
}

export interface RenameApplicationOptions {
  /** Workflows or steps moved in one commit; null moves everything in a single one. */
  readonly batchSize?: number | null;
  /** Also moves rows that belong to no application. */
  readonly adoptUnclaimedRows?: boolean;
}

/** The number of rows moved. */
export interface ApplicationRowCounts {
  readonly queues: number;
  readonly schedules: number;
  readonly versions: number;
  readonly workflows: number;
  readonly steps: number;
}

/** Rows that a rename moves at a time. */
export const DEFAULT_RENAME_BATCH_SIZE = 10_000;
/** No index leads to the rows of an application. */
const ALL_SCANS = { scans: 'all' } as const;
const batchSizeCheck = nullable(positiveInteger);
const oldNameCheck = optional(filledName);

/**
 * Moves queues, schedules, versions and active workflows in one commit, then all other workflows and the steps. If it is
 * interrupted, call it again. No process of the old name should be running.
 */
export async function renameApplication(
  operator: Operator,
  { oldName, newName }: ApplicationNames,
  { batchSize = DEFAULT_RENAME_BATCH_SIZE, adoptUnclaimedRows = false }: RenameApplicationOptions = {},
): Promise<ApplicationRowCounts> {
  checkNames(oldName, newName, adoptUnclaimedRows);
  batchSizeCheck.read(batchSize, 'options.batchSize');
  const renaming = { oldName: oldName ?? null, newName, withUnclaimed: adoptUnclaimedRows };
  const counts =
    batchSize === null ? await moveAtOnce(operator, renaming) : await moveInRanges(operator, renaming, batchSize);
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
  await operator.bus.publishAndWait(topics.schedules, ['']);
  return counts;
}

function checkNames(oldName: string | undefined, newName: string, adoptUnclaimedRows: boolean): void {
  oldNameCheck.read(oldName, 'oldName');
  filledName.read(newName, 'newName');
  if (oldName === undefined && !adoptUnclaimedRows) {
    throw new DBOSInvalidArgumentError('Nothing to move. Pass oldName, adoptUnclaimedRows, or both.', 'oldName');
  }
  if (oldName === newName) {
    throw new DBOSInvalidArgumentError(`The application is already named "${newName}".`, 'newName');
  }
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
    for (let next: string | undefined = ''; next !== undefined;) {
      const after: string = next;
      const range = await operator.retrying(() => moveRange(database, name, { renaming, after, size }));
      count += range.moved;
      next = range.next;
    }
    return count;
  };
  const ended = await moveTable('workflow_status');
  return { ...active, workflows: active.workflows + ended, steps: await moveTable('operation_outputs') };
}
