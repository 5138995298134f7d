// The verbs for the dead letters of a receiver: those of the outbox, on messages that could not become workflows. There are
// few of them, so all of a function are read at once.
import { createHash } from 'node:crypto';
import type { Receiving } from '../engine/plugin.js';
import { DBOSInvalidArgumentError } from '../model/errors/errors.js';
import {
  array,
  boolean,
  func,
  integer,
  number,
  optional,
  positiveInteger,
  record,
  string,
} from '../model/validation/validation.js';
import { type ConsumerSettings, prepareBatch } from './batch.js';
import type { ConsumerOptions } from './adapter.js';
import { type DeadLetter, deleteDeadLetter, listDeadLetters, revived, toState } from './dead-letters.js';

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
  readonly fingerprint: string;
  /** Of the newest. */
  readonly error: string;
  readonly count: number;
  readonly firstReceivedAt: number;
  readonly lastReceivedAt: number;
  readonly sampleID: string;
}

export interface ReceivedChangeOptions {
  /** The most to change. Default: all. */
  readonly limit?: number;
  /** Only count. */
  readonly dryRun?: boolean;
}

export interface ReceivedRequeueOptions extends ReceivedChangeOptions {
  /** Replaces the message. */
  readonly edit?: (message: unknown, letter: DeadLetter) => unknown;
}

const FIELDS = {
  ids: optional(array(string())),
  fingerprint: optional(string({ min: 1 })),
  since: optional(number()),
  before: optional(number()),
  archived: optional(boolean),
};
const LIST = record({ ...FIELDS, limit: optional(integer({ min: 1, max: 1000 })), cursor: optional(string()) });
const FILTER = record({ ...FIELDS, all: optional(boolean) });
const CHANGE = record({ limit: optional(positiveInteger), dryRun: optional(boolean) });
const REQUEUE = record({ limit: optional(positiveInteger), dryRun: optional(boolean), edit: optional(func) });

export interface ReceivedParts<Message, Options extends ConsumerOptions<Message>> {
  readonly receiving: Receiving;
  readonly functionName: string;
  /** How messages become workflows. Undefined if the function is not served here. */
  readonly settings: ConsumerSettings<Message, Options> | undefined;
}

export class ReceivedDeadLetters<Message, Options extends ConsumerOptions<Message>> {
  readonly #parts: ReceivedParts<Message, Options>;

  constructor(parts: ReceivedParts<Message, Options>) {
    this.#parts = parts;
  }

  /** A page of dead letters, the newest first. */
  async list(
    options: ReceivedFilter & { readonly limit?: number; readonly cursor?: string } = {},
  ): Promise<{ readonly letters: readonly DeadLetter[]; readonly cursor: string | undefined }> {
    LIST.read(options, 'options');
    const { limit = 100, cursor, ...filter } = options;
    const all = await this.#find(filter);
    const from = cursor === undefined ? 0 : all.findIndex(({ id }) => id === cursor) + 1;
    const letters = all.slice(from, from + limit);
    return { letters, cursor: from + limit < all.length ? letters.at(-1)?.id : undefined };
  }

  /** How many failed the same way, the most frequent first. */
  async groups(filter: ReceivedFilter = {}): Promise<ReceivedGroup[]> {
    FILTER.read(filter, 'filter');
    const groups = new Map<string, DeadLetter[]>();
    for (const letter of await this.#find(filter)) {
      const key = fingerprintOf(letter);
      groups.set(key, [...(groups.get(key) ?? []), letter]);
    }
    return [...groups]
      .map(([fingerprint, letters]) => {
        const [newest] = letters as [DeadLetter];
        const oldest = letters.at(-1) ?? newest;
        return {
          fingerprint,
          error: newest.error,
          count: letters.length,
          firstReceivedAt: oldest.receivedAt,
          lastReceivedAt: newest.receivedAt,
          sampleID: newest.id,
        };
      })
      .sort((a, b) => b.count - a.count);
  }

  /** One dead letter, archived or not; undefined if there is none. */
  async get(id: string): Promise<DeadLetter | undefined> {
    const { receiving, functionName } = this.#parts;
    return (await listDeadLetters(receiving, functionName)).find((letter) => letter.id === id);
  }

  /** Starts their workflows after all. One that still cannot become a workflow is skipped. */
  async requeue(
    filter: ReceivedChangeFilter,
    options: ReceivedRequeueOptions = {},
  ): Promise<{ readonly requeued: number; readonly skipped: number }> {
    REQUEUE.read(options, 'options');
    const { edit, ...bounds } = options;
    const { receiving, functionName, settings } = this.#parts;
    if (!settings) {
      throw new DBOSInvalidArgumentError(
        `No consumer of "${functionName}" is running here, so it cannot be requeued.`,
        'workflow',
      );
    }
    const letters = await this.#chosen(filter, bounds);
    if (bounds.dryRun) return { requeued: letters.length, skipped: 0 };
    let requeued = 0;
    for (const letter of letters) {
      const stored = revived(letter.message);
      const message = (edit ? await edit(stored, letter) : stored) as Message;
      const { workflows } = await prepareBatch(receiving, settings, [message]);
      if (workflows.length === 0) continue;
      // The ID comes from the message, so that a crash in between starts nothing twice.
      await receiving.commit(workflows, {});
      await deleteDeadLetter(receiving, functionName, letter.id);
      requeued += 1;
    }
    return { requeued, skipped: letters.length - requeued };
  }

  /** Deletes dead letters. */
  async discard(
    filter: ReceivedChangeFilter,
    options: ReceivedChangeOptions = {},
  ): Promise<{ readonly discarded: number }> {
    const { receiving, functionName } = this.#parts;
    const letters = await this.#chosen(filter, options);
    if (!options.dryRun) for (const { id } of letters) await deleteDeadLetter(receiving, functionName, id);
    return { discarded: letters.length };
  }

  /** Takes dead letters out of the lists, and keeps them. */
  async archive(
    filter: ReceivedChangeFilter,
    options: ReceivedChangeOptions = {},
  ): Promise<{ readonly archived: number }> {
    if (filter.archived) {
      throw new DBOSInvalidArgumentError('Only dead letters that are not archived can be.', 'filter.archived');
    }
    const { receiving } = this.#parts;
    const letters = await this.#chosen(filter, options);
    const archivedAt = receiving.clock.now();
    if (!options.dryRun && letters.length > 0) {
      await receiving.commit([], { states: letters.map((letter) => toState({ ...letter, archivedAt })) });
    }
    return { archived: letters.length };
  }

  async #chosen(filter: ReceivedChangeFilter, options: ReceivedChangeOptions): Promise<DeadLetter[]> {
    const { all, archived, ...conditions } = FILTER.read(filter, 'filter');
    const { limit } = CHANGE.read(options, 'options');
    if (all !== true && Object.values(conditions).every((value) => value === undefined)) {
      throw new DBOSInvalidArgumentError('The filter matches every dead letter. Say so with all: true.', 'filter');
    }
    return (await this.#find({ ...conditions, ...(archived !== undefined && { archived }) })).slice(0, limit);
  }

  async #find({ ids, fingerprint, since = -Infinity, before = Infinity, archived = false }: ReceivedFilter) {
    const { receiving, functionName } = this.#parts;
    return (await listDeadLetters(receiving, functionName))
      .filter(
        (letter) =>
          (letter.archivedAt !== undefined) === archived &&
          letter.receivedAt >= since &&
          letter.receivedAt < before &&
          (ids?.includes(letter.id) ?? true) &&
          (fingerprint === undefined || fingerprintOf(letter) === fingerprint),
      )
      .sort((a, b) => b.receivedAt - a.receivedAt || (a.id < b.id ? -1 : 1));
  }
}

/** The same for errors of one kind: numbers and IDs in the message do not count. */
function fingerprintOf({ error }: DeadLetter): string {
  const kind = error.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+|"[^"]*"/gi, '#');
  return createHash('sha256').update(kind).digest('hex').slice(0, 32);
}
