// The dead letters of receivers: messages that could not become workflows, kept in the system database. They are read page
// by page, however many there are.
import { createHash } from 'node:crypto';
import {
  changeLetters,
  LETTER_BATCH,
  LETTER_PAGE,
  LETTER_PAGE_FIELDS,
  type LetterChangeOptions,
  meantConditions,
  readLetterCursor,
  refuseArchived,
  writeLetterCursor,
} from './dead-letters.js';
import { array, boolean, number, optional, record, string } from '../../kernel/check/validation.js';
import {
  deleteEventDispatchStates,
  type EventDispatchState,
  pageEventDispatchStates,
  type StatePosition,
  upsertEventDispatchState,
} from '../../run/rows/event-dispatch.js';
import type { Operator } from '../../operator/operator.js';

/** A message that could not become a workflow. */
export interface ReceivedLetter {
  /** The ID that the workflow would have had. Random if the message had none that can be stored. */
  readonly id: string;
  /** The workflow function that the message was for. */
  readonly functionName: string;
  readonly receivedAt: number;
  readonly error: string;
  /** The message as JSON. Bytes are objects with the single field `base64`. A text if it cannot be written as JSON. */
  readonly message: unknown;
  /** Epoch milliseconds, if it was archived. */
  readonly archivedAt?: number;
}

export interface ReceivedFilter {
  readonly ids?: readonly string[];
  /** A group of equal failures, from `groups`. */
  readonly fingerprint?: string;
  /** Received at or after this time, in epoch milliseconds. */
  readonly since?: number;
  /** Received before this time. */
  readonly before?: number;
  /** Archived ones only. Default: false. */
  readonly archived?: boolean;
}

/** A filter that says so if it means everything. */
export interface ReceivedChangeFilter extends ReceivedFilter {
  readonly all?: true;
}

/** Dead letters that failed the same way. */
export interface ReceivedGroup {
  readonly functionName: string;
  readonly fingerprint: string;
  /** Of the newest. */
  readonly error: string;
  readonly count: number;
  readonly firstReceivedAt: number;
  readonly lastReceivedAt: number;
  readonly sampleID: string;
}

export type ReceivedChangeOptions = LetterChangeOptions;

export interface ReceivedPage {
  /** The newest first. */
  readonly letters: readonly ReceivedLetter[];
  /** Pass it for the next page; undefined on the last. */
  readonly cursor: string | undefined;
}

export const RECEIVED_LETTERS = 'everstep.receiver.dead-letters';

const FIELDS = {
  ids: optional(array(string())),
  fingerprint: optional(string({ min: 1 })),
  since: optional(number()),
  before: optional(number()),
  archived: optional(boolean),
};
const LIST = record({ ...FIELDS, ...LETTER_PAGE_FIELDS });
const FILTER = record({ ...FIELDS, all: optional(boolean) });

const IN_LISTS: ReceivedFilter = {};

export class ReceivedLetters {
  readonly #operator: Pick<Operator, 'database' | 'clock'>;
  readonly #functionName: string | undefined;

  /** Without a function: those of all. */
  constructor(operator: Pick<Operator, 'database' | 'clock'>, functionName?: string) {
    this.#operator = operator;
    this.#functionName = functionName;
  }

  /** A page of dead letters, the newest first. */
  async list(
    options: ReceivedFilter & { readonly limit?: number; readonly cursor?: string } = {},
  ): Promise<ReceivedPage> {
    LIST.read(options, 'options');
    const { limit = LETTER_PAGE, cursor, ...filter } = options;
    const letters: ReceivedLetter[] = [];
    for await (const letter of this.#find(filter, cursor === undefined ? undefined : readCursor(cursor))) {
      // One more than asked for tells whether there is another page.
      if (letters.length === limit) return { letters, cursor: writeCursor(letters.at(-1)) };
      letters.push(letter);
    }
    return { letters, cursor: undefined };
  }

  /** How many failed the same way, the most frequent first. */
  async groups(filter: ReceivedFilter = IN_LISTS): Promise<ReceivedGroup[]> {
    FILTER.read(filter, 'filter');
    const groups = new Map<string, ReceivedGroup>();
    for await (const { id, functionName, error, receivedAt } of this.#find(filter)) {
      const fingerprint = fingerprintOf(error);
      const key = JSON.stringify([functionName, fingerprint]);
      const newest = { functionName, fingerprint, error, sampleID: id, lastReceivedAt: receivedAt };
      const { count = 0, ...group }: Partial<ReceivedGroup> & typeof newest = groups.get(key) ?? newest;
      groups.set(key, { ...group, count: count + 1, firstReceivedAt: receivedAt });
    }
    return [...groups.values()].sort((a, b) => b.count - a.count);
  }

  /** One dead letter, archived or not; undefined if there is none. */
  async get(id: string): Promise<ReceivedLetter | undefined> {
    for (const archived of [false, true]) {
      const { letters } = await this.list({ ids: [id], archived, limit: 1 });
      if (letters[0]) return letters[0];
    }
    return undefined;
  }

  /** Deletes dead letters. */
  async discard(
    filter: ReceivedChangeFilter,
    options: ReceivedChangeOptions = {},
  ): Promise<{ readonly discarded: number }> {
    const discarded = await this.#change(filter, options, (letters) => this.remove(letters));
    return { discarded };
  }

  /** Takes dead letters out of the lists, and keeps them. */
  async archive(
    filter: ReceivedChangeFilter,
    options: ReceivedChangeOptions = {},
  ): Promise<{ readonly archived: number }> {
    refuseArchived(filter);
    const { clock, database } = this.#operator;
    const archivedAt = clock.now();
    const archived = await this.#change(filter, options, async (letters) => {
      await database.commit(letters.map((letter) => upsertEventDispatchState(toState({ ...letter, archivedAt }))));
    });
    return { archived };
  }

  /** The letters that a change is for, in pages. Throws if the filter means everything and does not say so. */
  async *chosen(
    filter: ReceivedChangeFilter,
    { limit = Infinity }: ReceivedChangeOptions,
  ): AsyncGenerator<readonly ReceivedLetter[], void, undefined> {
    const conditions = meantConditions(FILTER.read(filter, 'filter'));
    let page: ReceivedLetter[] = [];
    let count = 0;
    for await (const letter of this.#find(conditions)) {
      if (count === limit) break;
      count += 1;
      page.push(letter);
      if (page.length < LETTER_BATCH) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  }

  async remove(letters: readonly ReceivedLetter[]): Promise<void> {
    await deleteEventDispatchStates(
      this.#operator.database,
      letters.map(({ id, functionName }) => ({ service: RECEIVED_LETTERS, workflowFnName: functionName, key: id })),
    );
  }

  async #change(
    filter: ReceivedChangeFilter,
    options: ReceivedChangeOptions,
    act: (letters: readonly ReceivedLetter[]) => Promise<void>,
  ): Promise<number> {
    const batches = this.chosen(filter, options);
    return changeLetters(options, {
      async count() {
        let count = 0;
        for await (const letters of batches) count += letters.length;
        return count;
      },
      async changeSome() {
        const { value: letters } = await batches.next();
        if (!letters) return 0;
        await act(letters);
        return letters.length;
      },
    });
  }

  /** The newest first. A position goes by what does not change, so letters may be removed on the way. */
  async *#find(filter: ReceivedFilter, from?: StatePosition): AsyncGenerator<ReceivedLetter, void, undefined> {
    const { ids, fingerprint, since = -Infinity, before = Infinity, archived = false } = filter;
    const place = { service: RECEIVED_LETTERS, workflowFnName: this.#functionName, keys: ids };
    for (let after = from; ;) {
      const states = await pageEventDispatchStates(this.#operator.database, { ...place, after, limit: LETTER_BATCH });
      for (const letter of states.map(toLetter)) {
        if (letter.receivedAt < since) return;
        const isMeant =
          (letter.archivedAt !== undefined) === archived &&
          letter.receivedAt < before &&
          (fingerprint === undefined || fingerprintOf(letter.error) === fingerprint);
        if (isMeant) yield letter;
      }
      const last = states.at(-1);
      if (!last || states.length < LETTER_BATCH) return;
      after = { updateTime: last.updateTime ?? 0, workflowFnName: last.workflowFnName, key: last.key };
    }
  }
}

function toLetter({ workflowFnName, key, value, updateTime }: EventDispatchState): ReceivedLetter {
  const stored = JSON.parse(value ?? '{}') as Pick<ReceivedLetter, 'error' | 'message' | 'archivedAt'>;
  return { id: key, functionName: workflowFnName, receivedAt: updateTime ?? 0, ...stored };
}

/** What was read is JSON already. */
function toState({ id, functionName, receivedAt, error, message, archivedAt }: ReceivedLetter): EventDispatchState {
  const value = JSON.stringify({ error, message, archivedAt });
  return { service: RECEIVED_LETTERS, workflowFnName: functionName, key: id, value, updateTime: receivedAt };
}

/** The same for errors of one kind: numbers and IDs in the message do not count. */
function fingerprintOf(error: string): string {
  const kind = error.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+|"[^"]*"/gi, '#');
  return createHash('sha256').update(kind).digest('hex').slice(0, 32);
}

function writeCursor(letter: ReceivedLetter | undefined): string | undefined {
  return letter && writeLetterCursor([letter.receivedAt, letter.functionName, letter.id]);
}

function readCursor(cursor: string): StatePosition {
  return readLetterCursor(cursor, ([updateTime, workflowFnName, key]) =>
    typeof updateTime === 'number' && typeof workflowFnName === 'string' && typeof key === 'string'
      ? { updateTime, workflowFnName, key }
      : undefined,
  );
}
