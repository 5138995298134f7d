// The verbs for the dead letters of a receiver: those of the outbox, on messages that could not become workflows. Those that
// need no receiver are in `control`, so that the command line and HTTP have them too.
import type {
  ReceivedChangeFilter,
  ReceivedChangeOptions,
  ReceivedFilter,
  ReceivedGroup,
  ReceivedLetters,
  ReceivedPage,
  Receiving,
} from '../../run/plugin.js';
import { LETTER_CHANGE_FIELDS } from '../../features/dead-letter/dead-letters.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { func, optional, record } from '../../kernel/check/validation.js';
import type { ConsumerOptions } from './adapter.js';
import { type ConsumerSettings, prepareBatch } from './batch.js';
import { type DeadLetter, revived } from './dead-letters.js';

export type { ReceivedChangeFilter, ReceivedChangeOptions, ReceivedFilter, ReceivedGroup };

export interface ReceivedRequeueOptions extends ReceivedChangeOptions {
  /** Replaces the message. */
  readonly edit?: (message: unknown, letter: DeadLetter) => unknown;
}

const REQUEUE = record({ ...LETTER_CHANGE_FIELDS, edit: optional(func) });

export interface ReceivedParts<Message, Options extends ConsumerOptions<Message>> {
  readonly receiving: Receiving;
  readonly functionName: string;
  /** How messages become workflows. Undefined if the function is not served here. */
  readonly settings: ConsumerSettings<Message, Options> | undefined;
}

export class ReceivedDeadLetters<Message, Options extends ConsumerOptions<Message>> {
  readonly #parts: ReceivedParts<Message, Options>;
  readonly #letters: ReceivedLetters;

  constructor(parts: ReceivedParts<Message, Options>) {
    this.#parts = parts;
    this.#letters = parts.receiving.lettersOf(parts.functionName);
  }

  /** A page of dead letters, the newest first. */
  list(options: ReceivedFilter & { readonly limit?: number; readonly cursor?: string } = {}): Promise<ReceivedPage> {
    return this.#letters.list(options);
  }

  /** How many failed the same way, the most frequent first. */
  groups(filter: ReceivedFilter = {}): Promise<ReceivedGroup[]> {
    return this.#letters.groups(filter);
  }

  /** One dead letter, archived or not; undefined if there is none. */
  get(id: string): Promise<DeadLetter | undefined> {
    return this.#letters.get(id);
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
    let requeued = 0;
    let skipped = 0;
    for await (const letters of this.#letters.chosen(filter, bounds)) {
      for (const letter of bounds.dryRun ? [] : letters) {
        const stored = revived(letter.message);
        const message = (edit ? await edit(stored, letter) : stored) as Message;
        const { workflows } = await prepareBatch(receiving, settings, [message]);
        skipped += workflows.length === 0 ? 1 : 0;
        if (workflows.length === 0) continue;
        // The ID comes from the message, so that a crash in between starts nothing twice.
        await receiving.commit(workflows, {});
        await this.#letters.remove([letter]);
        requeued += 1;
      }
      if (bounds.dryRun) requeued += letters.length;
      else bounds.onProgress?.(requeued);
    }
    return { requeued, skipped };
  }

  /** Deletes dead letters. */
  discard(filter: ReceivedChangeFilter, options: ReceivedChangeOptions = {}): Promise<{ readonly discarded: number }> {
    return this.#letters.discard(filter, options);
  }

  /** Takes dead letters out of the lists, and keeps them. */
  archive(filter: ReceivedChangeFilter, options: ReceivedChangeOptions = {}): Promise<{ readonly archived: number }> {
    return this.#letters.archive(filter, options);
  }
}
