// Reads the histories of claimed workflows, no more at once than fit into memory, and in pages: each row takes its time in
// the event loop, and SQLite reads are synchronous.
import type { StepRecord } from '../../kernel/workflow/records.js';
import { findSteps, loadStepPage, loadSteps, measureSteps, outlineStepPage, type StepPage } from '../rows/steps.js';
import type { Runtime } from '../runtime.js';
import { History } from './history.js';
import { PAGE_BYTES, TextPages } from './text-pages.js';

/** Bytes of histories that are read together. The texts of a larger one are read in pages. */
export const HISTORY_BATCH_BYTES = 16_000_000;

/** Checkpoints in one page. */
const PAGE_STEPS = 1000;
/** Bytes of histories in one read: a page of short checkpoints. A larger one is read by itself, page by page. */
const READ_BYTES = 300_000;

/** How much memory each history takes up when it is loaded. */
export async function measureHistories(
  { database }: Runtime,
  workflowIDs: readonly string[],
): Promise<Map<string, number>> {
  return workflowIDs.length === 0 ? new Map() : measureSteps(database, workflowIDs);
}

/** Whether only a page of it is in memory at a time. */
function isPaged(bytes: number): boolean {
  return bytes > HISTORY_BATCH_BYTES;
}

/** The workflows in order, in batches whose histories fit into memory together. */
export function batchHistories<T>(items: readonly T[], bytesOf: (item: T) => number): T[][] {
  const memoryOf = (item: T): number => (isPaged(bytesOf(item)) ? PAGE_BYTES : bytesOf(item));
  return batchesBySize(items, memoryOf, HISTORY_BATCH_BYTES);
}

/** The items in order, in batches whose sizes add up to `max` at most. An item that is larger is a batch of its own. */
export function batchesBySize<T>(items: readonly T[], sizeOf: (item: T) => number, max: number): T[][] {
  const batches: T[][] = [];
  let left = 0;
  for (const item of items) {
    const size = sizeOf(item);
    const batch = batches.at(-1);
    if (batch && size <= left) {
      batch.push(item);
      left -= size;
    } else {
      batches.push([item]);
      left = max - size;
    }
  }
  return batches;
}

/** The histories of a batch, by workflow. One without checkpoints is missing. */
export async function loadHistories(
  runtime: Runtime,
  workflowIDs: readonly string[],
  sizes: ReadonlyMap<string, number>,
): Promise<Map<string, History>> {
  const paged = workflowIDs.filter((workflowID) => isPaged(sizes.get(workflowID) ?? 0));
  const whole = workflowIDs.filter((workflowID) => !paged.includes(workflowID));
  const histories = new Map<string, History>();
  const sizeOf = (workflowID: string): number => sizes.get(workflowID) ?? 0;
  for (const [index, batch] of batchesBySize(whole, sizeOf, READ_BYTES).entries()) {
    if (index > 0) await turn();
    const steps = await loadTogether(runtime, batch, sizeOf);
    for (const [workflowID, records] of groupSteps(steps)) histories.set(workflowID, new History(records));
  }
  for (const workflowID of paged) histories.set(workflowID, await loadPaged(runtime, workflowID));
  return histories;
}

async function loadTogether(
  { database }: Runtime,
  workflowIDs: readonly string[],
  sizeOf: (workflowID: string) => number,
): Promise<StepRecord[]> {
  const [first = ''] = workflowIDs;
  if (sizeOf(first) <= READ_BYTES) return loadSteps(database, workflowIDs);
  const steps: StepRecord[] = [];
  await eachPage(async (page) => {
    const found = await loadStepPage(database, first, page);
    steps.push(...found);
    return found.map(({ stepID }) => stepID);
  });
  return steps;
}

/** Reads a workflow page by page. `read` returns the numbers of what it has read, which start at 0. */
async function eachPage(read: (page: StepPage) => Promise<readonly number[]>): Promise<void> {
  let stepIDs: readonly number[] = [];
  do {
    stepIDs = await read({ after: stepIDs.at(-1) ?? -1, limit: PAGE_STEPS });
    await turn();
  } while (stepIDs.length === PAGE_STEPS);
}

/** Lets other work have its turn. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function loadPaged(runtime: Runtime, workflowID: string): Promise<History> {
  const { database } = runtime;
  const load = (stepIDs: readonly number[]): Promise<StepRecord[]> =>
    runtime.retrying(() =>
      findSteps(
        database,
        stepIDs.map((stepID) => ({ workflowID, stepID })),
      ),
    );
  const records = new Map<number, StepRecord>();
  const texts = new TextPages(load);
  await eachPage(async (page) => {
    const outlines = await outlineStepPage(database, workflowID, page);
    for (const { step } of outlines) records.set(step.stepID, step);
    texts.add(outlines);
    return outlines.map(({ step }) => step.stepID);
  });
  return new History(records, texts);
}

function groupSteps(steps: readonly StepRecord[]): Map<string, Map<number, StepRecord>> {
  const groups = new Map<string, Map<number, StepRecord>>();
  for (const step of steps) {
    const group = groups.get(step.workflowID) ?? new Map<number, StepRecord>();
    groups.set(step.workflowID, group.set(step.stepID, step));
  }
  return groups;
}
