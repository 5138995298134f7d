// The history of a workflow as the public API returns it, and the journal of all workflows as it grows.
import { type Clock, sleep } from '../../kernel/base/clock.js';
import type { HistoryEventType } from './event.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import type { Codec } from '../../kernel/codec/codec.js';
import {
  type HistoryPosition,
  type HistoryRow,
  readHistory,
  tailJournal,
  type TailCursor,
  type TailRow,
} from './history.sql.js';
import { readable } from '../listing/status.js';
import { isRecord } from '../../kernel/check/validation.js';
import type { Operator } from '../../operator/operator.js';

/** Something that happened to a workflow. */
export interface HistoryEvent {
  readonly workflowID: string;
  /** Where it is in the history. Pass it as `after` to continue behind it. */
  readonly cursor: string;
  readonly type: HistoryEventType | (string & {});
  /** Epoch milliseconds. Stored events have the time of the database. */
  readonly at: number;
  readonly step?: number;
  readonly attempt?: number;
  readonly executor?: string;
  readonly actor?: string;
  /** Depends on the type. Fields may be added, never renamed. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface HistoryOptions {
  /** The cursor of an event: only later ones are returned. */
  readonly after?: string;
  /** How many events to return at most. Default: all. */
  readonly limit?: number;
  readonly types?: readonly string[];
  /** Whether to add inputs, results and errors to the details. Default: false. */
  readonly payloads?: boolean;
}

/** Events in one answer. The database sorts the whole history for each, so those of a thousand steps should share one. */
const PAGE = 5000;
/** Values may be large. */
const PAGE_WITH_PAYLOADS = 1000;

/** All events of a workflow in order, page by page. None if it does not exist. */
export async function* getHistory(
  operator: Operator,
  workflowID: string,
  { after, limit = Infinity, types, payloads = false }: HistoryOptions = {},
): AsyncGenerator<HistoryEvent, void, undefined> {
  let position = after === undefined ? undefined : readPosition(after);
  const page = payloads ? PAGE_WITH_PAYLOADS : PAGE;
  for (let left = limit; left > 0; left -= page) {
    const query = { workflowID, after: position, limit: Math.min(left, page), types, payloads };
    const rows = await operator.retrying(() => readHistory(operator.database, query));
    for (const row of rows) yield row.payload === null ? plainEvent(row) : await toEvent(operator.codec, row);
    position = rows.at(-1)?.position;
    if (rows.length < Math.min(left, page)) return;
  }
}

function plainEvent(row: HistoryRow): HistoryEvent {
  return eventOf(row, writePosition(row.position), detailsOf(row));
}

async function toEvent(codec: Codec, row: HistoryRow): Promise<HistoryEvent> {
  const { payloadName, payload, serialization } = row;
  const details = detailsOf(row);
  if (payloadName !== null && payload !== null) {
    const decode = decoderOf(codec, row.type, payloadName);
    details[payloadName] = await readable(payload, () => decode(payload, serialization));
  }
  return eventOf(row, writePosition(row.position), details);
}

type Decode = (text: string, serialization: string | null) => unknown;

function decoderOf(codec: Codec, type: string, payloadName: string): Decode {
  if (payloadName === 'error') return (text, serialization) => codec.decodeError(text, serialization);
  if (type !== 'WorkflowStarted') return (text, serialization) => codec.decodeValue(text, serialization);
  return async (text, serialization) => (await codec.decodeInputs(text, serialization)).args;
}

function detailsOf({ details }: Pick<HistoryRow, 'details'>): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(details ?? '{}');
    if (isRecord(parsed)) return parsed;
  } catch {
    // A damaged row must not hide the others.
  }
  return { unreadable: details };
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Without the fields that do not apply. There may be thousands, so nothing is spread. */
function eventOf(row: HistoryRow | TailRow, cursor: string, details: HistoryEvent['details']): HistoryEvent {
  const { workflowID, type, at, step, attempt, executor, actor } = row;
  const event: Writable<HistoryEvent> = { workflowID, cursor, type, at, details };
  if (step !== null) event.step = step;
  if (attempt !== null) event.attempt = attempt;
  if (executor !== null) event.executor = executor;
  if (actor !== null) event.actor = actor;
  return event;
}

function writePosition({ phase, at, step, part, seq }: HistoryPosition): string {
  return `${phase}.${at}.${step}.${part}.${seq}`;
}

function readPosition(cursor: string): HistoryPosition {
  const numbers = numbersIn(cursor, 5);
  const [phase = 0, at = 0, step = 0, part = 0, seq = 0] = numbers;
  return { phase, at, step, part, seq };
}

function numbersIn(cursor: string, count: number): number[] {
  const numbers = /^-?\d+(\.-?\d+)*$/.test(cursor) ? cursor.split('.').map(Number) : [];
  if (numbers.length === count && numbers.every(Number.isSafeInteger)) return numbers;
  throw new DBOSInvalidArgumentError('Invalid cursor. Pass the cursor of an event, unchanged.', 'after');
}

export interface TailOptions {
  /** A time, or the cursor of the last event seen. Default: now. */
  readonly since?: Date | number | string;
  readonly types?: readonly string[];
  /** Ends the iteration. Without it, it ends when the loop is left. */
  readonly signal?: AbortSignal;
  /** Whether to wait for further events; false ends with the last one. Default: true. */
  readonly follow?: boolean;
}

const POLL_MS = 250;

/**
 * The stored events of all workflows, in an order in which none is skipped: an event appears once no transaction is open
 * that could still add an earlier one.
 */
export async function* tailHistory(
  operator: Operator,
  { since = operator.clock.now(), types, signal, follow = true }: TailOptions = {},
): AsyncGenerator<HistoryEvent, void, undefined> {
  let after = startOf(since);
  for (;;) {
    const query = { after, types, limit: PAGE };
    const rows = await operator.retrying(() => tailJournal(operator.database, query));
    for (const row of rows) {
      const { epoch, xid, seq, part } = row.cursor;
      yield eventOf(row, `${epoch}.${xid}.${seq}.${part}`, detailsOf(row));
      if (signal?.aborted) return;
    }
    after = rows.at(-1)?.cursor ?? after;
    if (rows.length === PAGE) continue;
    if (!follow || !(await paused(operator.clock, signal))) return;
  }
}

/** False if aborted. */
async function paused(clock: Clock, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal?.aborted) return false;
  try {
    await sleep(clock, POLL_MS, signal);
    return true;
  } catch (error) {
    if (signal?.aborted) return false;
    throw error;
  }
}

function startOf(since: Date | number | string): TailCursor | { readonly since: number } {
  if (typeof since !== 'string') return { since: Math.floor(Number(since)) };
  const [, xid = '0'] = since.split('.');
  // It may have 64 bits.
  const [epoch = 0, , seq = 0, part = 0] = numbersIn(since.replace(/\.\d+/, '.0'), 4);
  return { epoch, xid, seq, part };
}
