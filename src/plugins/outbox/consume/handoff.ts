// Turns messages into workflows, each exactly once. If the outbox is in the system database, deleting the message and
// creating the workflow are one transaction. Otherwise the workflow is created before that commits, under an ID made from
// the message, so a second attempt creates nothing.
import type { Handoff, NewMessage, PreparedWorkflow, Started } from '../../../run/plugin.js';
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import type { Row } from '../../transaction/driver.js';
import type { OutboxDatabase, Transaction } from '../database.js';
import { insertDeadLetter } from '../dead-letters/burying.js';
import { toFailure } from '../dead-letters/failure.js';
import type { ConsumerHost } from './consumer.js';
import type { Process, Processed } from './due-rows.js';
import { take, takeThese } from './fetching.js';
import { byID, type FetchedRow, toFetched } from './message.js';
import type { FailureReason } from './outcomes.js';
import { pickInOrder, type PickOptions } from './picking.js';

/** What a message becomes. */
export type Work =
  | { readonly kind: 'workflows'; readonly prepared: readonly PreparedWorkflow[] }
  | { readonly kind: 'send'; readonly message: NewMessage };

export interface HandoffParts {
  readonly host: ConsumerHost;
  readonly engine: Handoff;
  /** Prepares what the message becomes. If it throws, the message becomes a dead letter. */
  readonly prepare: (row: FetchedRow) => Promise<Work>;
  /** Whether messages of a key must be handed over in order. */
  readonly isOrdered: boolean;
}

/** Prepares a handoff. */
export async function beginHandoff(parts: HandoffParts): Promise<Process> {
  const isInside = await isShared(parts.engine, parts.host.database);
  return (tx, pick, signal) => handOver(parts, tx, { pick, signal, isInside });
}

interface Failed {
  readonly row: FetchedRow;
  readonly reason: FailureReason;
  readonly error: unknown;
}

/** Whether the outbox is in the system database. */
function isShared(engine: Handoff, database: OutboxDatabase): Promise<boolean> {
  return engine.isShared(database.driver, async (text, values) => {
    try {
      return await database.transact((tx) => tx.query(text, values), { readOnly: true });
    } catch {
      // A database that refuses the query is not the system database.
      return [];
    }
  });
}

/** Takes what is due and hands it over. */
async function handOver(
  parts: HandoffParts,
  tx: Transaction,
  { pick, signal, isInside }: { readonly pick: PickOptions; readonly signal: AbortSignal; readonly isInside: boolean },
): Promise<Processed> {
  const { host, isOrdered } = parts;
  const taken = isOrdered ? takeThese(pick.table, await pickInOrder(tx, pick)) : take(pick);
  const rows = (await tx.run(taken)).map(toFetched).sort(byID);
  if (rows.length === 0) return { count: 0 };
  const { ready, failed } = await prepareAll(parts, rows);
  const started: Started[] = [];
  const abandon = (): void => started.forEach((one) => one.failed());
  try {
    if (isInside) await withinTransaction(parts, tx, { ready, failed, started });
    else await acrossDatabases(parts, { ready, failed, signal });
    await buryAll(host, tx, failed);
  } catch (error) {
    abandon();
    throw error;
  }
  return { count: rows.length, committed: () => started.forEach((one) => one.committed()), failed: abandon };
}

interface Ready {
  readonly row: FetchedRow;
  readonly work: Work;
}

async function prepareAll({ prepare }: HandoffParts, rows: readonly FetchedRow[]) {
  const ready: Ready[] = [];
  const failed: Failed[] = [];
  for (const row of rows) {
    if (row.isExpired) failed.push({ row, reason: 'expired', error: undefined });
    else if (row.fault) failed.push({ row, reason: 'rejected', error: row.fault });
    else {
      try {
        ready.push({ row, work: await prepare(row) });
      } catch (error) {
        failed.push({ row, reason: 'rejected', error });
      }
    }
  }
  return { ready, failed };
}

async function withinTransaction(
  { engine }: HandoffParts,
  tx: Transaction,
  {
    ready,
    failed,
    started,
  }: { readonly ready: readonly Ready[]; readonly failed: Failed[]; readonly started: Started[] },
): Promise<void> {
  const prepared = ready.flatMap(({ work }) => (work.kind === 'workflows' ? work.prepared : []));
  const query = async (text: string, values: readonly unknown[]): Promise<Row[]> => [...(await tx.query(text, values))];
  if (prepared.length > 0) started.push(await engine.startIn(query, prepared));
  for (const { row, work } of ready) {
    if (work.kind !== 'send') continue;
    const { missing, announce } = await engine.sendIn(query, [work.message]);
    if (missing.length > 0) failed.push(unroutable(row, work.message));
    else started.push({ committed: announce, failed: () => {} });
  }
}

async function acrossDatabases(
  { engine }: HandoffParts,
  {
    ready,
    failed,
    signal,
  }: { readonly ready: readonly Ready[]; readonly failed: Failed[]; readonly signal: AbortSignal },
): Promise<void> {
  const prepared = ready.flatMap(({ work }) => (work.kind === 'workflows' ? work.prepared : []));
  if (prepared.length > 0) await engine.start(prepared, signal);
  for (const { row, work } of ready) {
    if (work.kind === 'send' && !(await engine.send(work.message))) failed.push(unroutable(row, work.message));
  }
}

function unroutable(row: FetchedRow, { destinationID }: NewMessage): Failed {
  const error = new InvalidOutboxError(`There is no workflow "${destinationID}" to send to.`);
  return { row, reason: 'unroutable', error };
}

async function buryAll(host: ConsumerHost, tx: Transaction, failed: readonly Failed[]): Promise<void> {
  for (const { row, reason, error } of failed) {
    host.logger.warn(
      `Message "${row.messageID}" of "${row.queue}" cannot become a workflow (${reason}): ${String(error)}`,
    );
    const failure = toFailure(error, host.renderError);
    if (host.dlqTable) await tx.run(insertDeadLetter(host.dlqTable, row, { reason, failure }));
  }
}
