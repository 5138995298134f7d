// Exports workflows from a database and imports them into one, of either dialect.
import { newID } from '../../kernel/base/ids.js';
import { importCreator } from '../../kernel/workflow/creator.js';
import { WorkflowImportError } from '../../kernel/errors/errors.js';
import { boolean, nullish, oneOf, optional, record } from '../../kernel/check/validation.js';
import { hasEnded } from '../../kernel/workflow/status.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { findTrees, readTransferred, type Transferred, type TransferredRow, writeTransferred } from './transfer.sql.js';
import { type ExportedWorkflow, type ExportSource, fromExported, readSource, toExported } from './export-format.js';
import { findWorkflowPage, type GetWorkflowsInput } from '../listing/listing.js';
import { announceQueued } from '../../operator/announcements.js';
import type { Operator } from '../../operator/operator.js';

export interface ExportInput extends Omit<GetWorkflowsInput, 'offset' | 'loadInput' | 'loadOutput'> {
  /** Includes their descendants. */
  readonly exportChildren?: boolean;
}

export interface ImportOptions {
  /** If an ID exists: stop with an error, or keep the existing workflow. */
  readonly onConflict?: 'fail' | 'skip';
  /**
   * What to do with active workflows: import them as cancelled, so that nothing runs twice and you can resume them; or
   * enqueue them, so that they continue here.
   */
  readonly activeWorkflows?: 'cancel' | 'enqueue';
}

export interface ImportResult {
  readonly imported: number;
  readonly skipped: number;
}

/** Workflows read or written at once. */
const BATCH = 50;
/** A batch with more characters is written at once. */
const CHARACTERS_MAX = 4_000_000;

const exportChildrenCheck = nullish(boolean);
const importCheck = record(
  { onConflict: optional(oneOf(['fail', 'skip'])), activeWorkflows: optional(oneOf(['cancel', 'enqueue'])) },
  { unknown: 'ignore' },
);

/** The matching workflows with all their data, in creation order; children after their parents. */
export async function* exportWorkflows(
  operator: Operator,
  input: ExportInput = {},
): AsyncGenerator<ExportedWorkflow, void, undefined> {
  const { exportChildren, ...query } = input;
  const isWithChildren = exportChildrenCheck.read(exportChildren, 'filter.exportChildren') ?? false;
  const exported = new Set<string>();
  let cursor: string | undefined;
  let left = query.limit ?? Infinity;
  while (left > 0) {
    const lean = { ...query, cursor, limit: Math.min(left, BATCH), loadInput: false, loadOutput: false };
    const page = await findWorkflowPage(operator, lean);
    const ids = page.records.map(({ workflowID }) => workflowID);
    left -= ids.length;
    if (isWithChildren) yield* exportTrees(operator, ids, exported);
    else yield* exportEach(operator, ids);
    if (page.nextCursor === null) return;
    cursor = page.nextCursor;
  }
}

/** Exports a workflow once, even if it matches and is a descendant of another match. */
async function* exportTrees(
  operator: Operator,
  workflowIDs: readonly string[],
  exported: Set<string>,
): AsyncGenerator<ExportedWorkflow, void, undefined> {
  const tree = await operator.retrying(() => findTrees(operator.database, workflowIDs));
  const ids = tree.filter((id) => !exported.has(id));
  for (const id of ids) exported.add(id);
  yield* exportEach(operator, ids);
}

async function* exportEach(
  operator: Operator,
  workflowIDs: readonly string[],
): AsyncGenerator<ExportedWorkflow, void, undefined> {
  for (let first = 0; first < workflowIDs.length; first += BATCH) {
    const batch = workflowIDs.slice(first, first + BATCH);
    const read = await operator.retrying(() => readTransferred(operator.database, batch));
    for (const one of read) yield toExported(one);
  }
}

/** Imports exported workflows in batches, each workflow completely or not at all. */
export async function importWorkflows(
  operator: Operator,
  source: ExportSource,
  options: ImportOptions = {},
): Promise<ImportResult> {
  const { onConflict = 'fail', activeWorkflows = 'cancel' } = importCheck.read(options, 'options');
  const importer = new Importer(operator, { onConflict, activeWorkflows });
  for await (const one of readSource(source)) await importer.add(one);
  return importer.finish();
}

/** Collects workflows and writes them in batches. */
class Importer {
  readonly #operator: Operator;
  readonly #options: Required<ImportOptions>;
  readonly #importID = newID();
  #batch: Transferred[] = [];
  #batchIDs = new Set<string>();
  #batches = 0;
  #characters = 0;
  #imported = 0;
  #skipped = 0;

  constructor(operator: Operator, options: Required<ImportOptions>) {
    this.#operator = operator;
    this.#options = options;
  }

  async add(exported: unknown): Promise<void> {
    const read = fromExported(exported, this.#imported);
    const { workflowID } = read.workflow_status;
    // In one batch the second would count as the first. In the next one it finds the ID in use.
    if (this.#batchIDs.has(workflowID)) await this.#write();
    this.#batchIDs.add(workflowID);
    this.#batch.push({ ...read, workflow_status: this.#toImported(read.workflow_status) });
    this.#characters += sizeOf(read);
    if (this.#batch.length >= BATCH || this.#characters >= CHARACTERS_MAX) await this.#write();
  }

  async finish(): Promise<ImportResult> {
    await this.#write();
    return { imported: this.#imported, skipped: this.#skipped };
  }

  /** The row to import. Ended workflows do not change. */
  #toImported(row: TransferredRow): TransferredRow {
    if (hasEnded(row.status)) return row;
    const fresh = { ...row, owner: null, startedAt: null };
    if (this.#options.activeWorkflows === 'cancel') {
      return { ...fresh, status: 'CANCELLED', queueName: null, deduplicationID: null, completedAt: row.updatedAt };
    }
    const status = row.status === 'PENDING' ? 'ENQUEUED' : row.status;
    return { ...fresh, status, queueName: row.queueName ?? INTERNAL_QUEUE };
  }

  async #write(): Promise<void> {
    const batch = this.#batch;
    this.#batch = [];
    this.#batchIDs = new Set();
    this.#characters = 0;
    if (batch.length === 0) return;
    this.#batches += 1;
    // By its creator, a retry of the same batch recognises what it has written.
    const creator = importCreator(`${this.#importID}-${this.#batches}`);
    const options = { isAllOrNone: this.#options.onConflict === 'fail', creator };
    const { database } = this.#operator;
    const verdict = await this.#operator.retrying(() => writeTransferred(database, batch, options));
    this.#imported += verdict.written.length;
    this.#skipped += verdict.existing.length;
    const [duplicated] = verdict.duplicated;
    if (duplicated !== undefined) this.#refuse(duplicated, 'its deduplication ID is held by another in its queue');
    const [existing] = verdict.existing;
    if (existing !== undefined && options.isAllOrNone) this.#refuse(existing, 'the ID is in use');
    this.#announce(batch, new Set(verdict.written));
  }

  #refuse(workflowID: string, problem: string): never {
    throw new WorkflowImportError(
      `Workflow "${workflowID}" was not imported: ${problem}. ${this.#imported} before it were imported. ` +
        `Import with onConflict: 'skip' to keep existing workflows, or delete them first.`,
      workflowID,
      this.#imported,
    );
  }

  #announce(batch: readonly Transferred[], written: ReadonlySet<string>): void {
    const rows = batch
      .map(({ workflow_status }) => workflow_status)
      .filter(({ workflowID }) => written.has(workflowID));
    announceQueued(this.#operator.bus, rows);
  }
}

function sizeOf(transferred: Transferred): number {
  const { inputs, output, error } = transferred.workflow_status;
  let size = (inputs?.length ?? 0) + (output?.length ?? 0) + (error?.length ?? 0);
  for (const step of transferred.operation_outputs)
    size += (step.output?.length ?? 0) + (step.error?.length ?? 0) + 200;
  const others = [
    ...transferred.workflow_events,
    ...transferred.workflow_events_history,
    ...transferred.streams,
    ...transferred.notifications,
  ];
  for (const { text } of others) size += text.length + 200;
  for (const { details } of transferred.journal) size += (details?.length ?? 0) + 200;
  return size;
}
