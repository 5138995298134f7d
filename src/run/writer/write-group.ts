// The items of one commit: the statements that write them, and how each item is settled.
import type { Entry } from '../../kernel/base/batcher.js';
import type { Sql } from '../../kernel/sql/sql.js';
import type { CommitOptions, Database, Row } from '../../database/database.js';
import type { Bus } from '../../database/notify/bus.js';
import { notificationsOf } from './commit-notifications.js';
import {
  consumeMessages,
  insertMessages,
  judgeMessages,
  type Sending,
  type SendVerdict,
} from '../../features/message/messages.sql.js';
import { type NewEvent, upsertEventHistory, upsertEvents } from '../../features/message/events.sql.js';
import type { Owned } from '../rows/lifecycle.js';
import type { Checkpoint } from '../rows/steps.js';
import { insertStreamValues, judgeStreamValues, type NewStreamValue } from '../../features/message/streams.sql.js';
import type { NewWorkflow, Outcome } from '../rows/workflows.js';
import type { Notification } from '../../database/notify/listener.js';
import type { Refill } from '../../features/queue/refills.sql.js';
import { statementsOf } from '../../features/history/facts.sql.js';
import { insertEntries, type JournalEntry } from '../../features/history/journal.sql.js';
import { checkpointOfCancelledWrite, checkpointWrite } from '../../features/history/step-facts.sql.js';
import { outcomeWrite, startWrite } from '../../features/history/workflow-facts.sql.js';
import { RefillPart } from './refill-part.js';
import { WritePart } from './write-part.js';
import {
  type CheckpointVerdict,
  judgeCheckpoints,
  judgeOutcomes,
  judgeStarts,
  type OutcomeVerdict,
  type StartVerdict,
} from './writer-verdicts.js';

/** How to write a group. */
export interface WriteOptions extends Pick<CommitOptions, 'lockTimeoutMs'> {
  /** Notifies other processes of messages and events. */
  readonly bus?: Pick<Bus, 'afterCommit'>;
  /** Called when the commit is confirmed, before any item is settled. */
  readonly onCommitted?: () => void;
}

/** A child workflow and its parent's checkpoint of the start. */
export interface ChildStart {
  readonly start: NewWorkflow;
  readonly checkpoint: Checkpoint;
}

/** The checkpoint is only written if this start created the child. */
export interface ChildVerdict {
  readonly start: StartVerdict;
  readonly checkpoint: CheckpointVerdict;
}

/** A message, with the sender's checkpoint if workflow code sent it. */
export interface Send {
  readonly sending: Sending;
  readonly checkpoint?: Checkpoint;
  /** Whether other processes are told of it. */
  readonly isAnnounced?: boolean;
}

/** The checkpoint is only written if the message is stored. */
export interface SendVerdicts {
  readonly sent: SendVerdict;
  readonly checkpoint: CheckpointVerdict | undefined;
}

/** An event, with the checkpoint of the step that sets it. */
export interface SetEvent {
  readonly event: NewEvent;
  readonly checkpoint: Checkpoint;
}

/** A stream value, with the writer's checkpoint if workflow code wrote it. */
export interface Append {
  readonly value: NewStreamValue;
  readonly checkpoint?: Checkpoint;
}

/** `isFromOutside`: a caller outside of workflows waits for it. */
export type Item =
  | { readonly kind: 'start'; readonly start: NewWorkflow; readonly isFromOutside?: boolean }
  | { readonly kind: 'child'; readonly child: ChildStart }
  /** Nothing depends on a relaxed one: it need not be durable before the next commit is. */
  | {
      readonly kind: 'checkpoint';
      readonly checkpoint: Checkpoint;
      readonly relaxed?: boolean;
      /** A resume must not repeat it. What was merely observed can be observed again. */
      readonly isEffect?: boolean;
    }
  | { readonly kind: 'send'; readonly send: Send; readonly isFromOutside?: boolean }
  /** The checkpoint of a step that received a message. */
  | { readonly kind: 'receipt'; readonly checkpoint: Checkpoint }
  | { readonly kind: 'event'; readonly set: SetEvent }
  | { readonly kind: 'stream'; readonly append: Append }
  | { readonly kind: 'outcome'; readonly outcome: Outcome; readonly refill?: Refill | undefined }
  /** An event of the run that nothing else records. */
  | { readonly kind: 'journal'; readonly entry: JournalEntry };

export type Verdict = StartVerdict | ChildVerdict | CheckpointVerdict | SendVerdicts | OutcomeVerdict;

export class WriteGroup {
  readonly #starts = new WritePart<NewWorkflow, StartVerdict | undefined>({
    write: (starts, dialect) => statementsOf(dialect, startWrite, starts),
    judge: judgeStarts,
  });
  readonly #journal = new WritePart<JournalEntry>({ write: insertEntries });
  readonly #messages = new WritePart({ write: insertMessages, judge: judgeMessages });
  readonly #receipts = new WritePart<Checkpoint>({ write: consumeMessages });
  readonly #events = new WritePart<NewEvent>({ write: upsertEvents });
  readonly #eventHistory = new WritePart<NewEvent>({ write: upsertEventHistory });
  readonly #streams = new WritePart({ write: insertStreamValues, judge: judgeStreamValues });
  readonly #checkpoints = new WritePart<Checkpoint, CheckpointVerdict>({
    write: (checkpoints, dialect) => statementsOf(dialect, checkpointWrite, checkpoints),
    judge: judgeCheckpoints,
  });
  readonly #outcomes = new WritePart<Outcome, OutcomeVerdict>({
    write: (outcomes, dialect) => statementsOf(dialect, outcomeWrite, outcomes),
    judge: judgeOutcomes,
  });
  readonly #refills = new RefillPart();
  /** Checkpoints of effects that completed, and their verdicts. */
  readonly #effects: { readonly checkpoint: Checkpoint; readonly verdict: () => CheckpointVerdict }[] = [];
  /** Starts that include their outcome, by outcome. */
  readonly #joined = new Map<Outcome, () => StartVerdict | undefined>();
  /**
   * In the order of the statements: starts first, so that everything else finds its workflow; then what a run observed before
   * its next write; checkpoints after what they refer to; outcomes last, because they end the ownership.
   */
  readonly #parts: readonly Pick<WritePart<never>, 'judge' | 'statements'>[];
  /** Each resolves its entry. False if the item was refused without a reason that can be seen. */
  readonly #settle: readonly ((entry: Entry<Item, Verdict>) => boolean)[];
  readonly #entries: readonly Entry<Item, Verdict>[];
  readonly #notifications: readonly Notification[];
  readonly #isRelaxed: boolean;

  constructor(entries: readonly Entry<Item, Verdict>[]) {
    this.#entries = entries;
    const ended = outcomesWithTheirStart(entries);
    this.#isRelaxed = entries.every(({ item }) => item.kind === 'checkpoint' && item.relaxed === true);
    this.#notifications = notificationsOf(entries.map(({ item }) => item));
    this.#settle = entries.map(({ item }) => {
      const verdictOf = this.#take(item, ended);
      for (const entry of entriesOf(item) ?? []) this.#journal.add(entry);
      return ({ resolve }) => {
        const verdict = verdictOf();
        if (verdict !== undefined) resolve(verdict);
        return verdict !== undefined;
      };
    });
    this.#parts = [
      this.#starts,
      this.#journal,
      this.#messages,
      this.#receipts,
      this.#events,
      this.#eventHistory,
      this.#streams,
      this.#checkpoints,
      this.#outcomes,
    ];
  }

  /**
   * Commits the statements and settles the entries. May be repeated as a whole. Returns the entries whose items were
   * refused without a reason that can be seen: nothing of them was written, and they are not settled.
   */
  async write(database: Database, { bus, lockTimeoutMs, onCommitted }: WriteOptions): Promise<Entry<Item, Verdict>[]> {
    const statements: Sql[] = [];
    const judged: [part: Pick<WritePart<never>, 'judge'>, index: number][] = [];
    for (const part of this.#parts) {
      const written = part.statements(database.dialect);
      if (written.length > 0) judged.push([part, statements.length]);
      statements.push(...written);
    }
    const refills = this.#refills.begin(database);
    const commit = (notification?: Sql): Promise<Row[][]> =>
      database.commit([...statements, ...refills], {
        afterCommit: notification,
        relaxed: this.#isRelaxed,
        lockTimeoutMs,
      });
    let results: Row[][];
    try {
      results = await (bus ? bus.afterCommit(this.#notifications, commit) : commit());
    } catch (error) {
      this.#refills.fail();
      throw error;
    }
    onCommitted?.();
    this.#refills.end(results.slice(statements.length));
    for (const [part, index] of judged) await part.judge(database, results[index] ?? []);
    await this.#keepOfCancelled(database, { lockTimeoutMs });
    return this.#entries.filter((entry, index) => !this.#settle[index]?.(entry));
  }

  /** An effect that completed while its workflow was cancelled is recorded all the same. Its run has to stop. */
  async #keepOfCancelled(database: Database, options: CommitOptions): Promise<void> {
    const lost = this.#effects.filter(({ verdict }) => verdict() === 'lost').map(({ checkpoint }) => checkpoint);
    if (lost.length === 0) return;
    await database.commit(statementsOf(database.dialect, checkpointOfCancelledWrite, lost), options);
  }

  /** Adds the item to its parts. The returned function combines their verdicts; undefined if there is none. */
  #take(item: Item, ended: ReadonlyMap<string, Outcome>): () => Verdict | undefined {
    switch (item.kind) {
      case 'start': {
        const outcome = ended.get(item.start.workflowID);
        const verdict = this.#starts.add(outcome ? { ...item.start, outcome } : item.start);
        if (outcome) this.#joined.set(outcome, verdict);
        return verdict;
      }
      case 'child': {
        const start = this.#starts.add(item.child.start);
        const checkpoint = this.#checkpoints.add(item.child.checkpoint);
        return () => {
          const verdict = start();
          return verdict && { start: verdict, checkpoint: checkpoint() };
        };
      }
      case 'checkpoint': {
        const verdict = this.#checkpoints.add(item.checkpoint);
        // A cancellation may be the cause of an error.
        if (item.isEffect && item.checkpoint.step.error === null) {
          this.#effects.push({ checkpoint: item.checkpoint, verdict });
        }
        return verdict;
      }
      case 'send': {
        const sent = this.#messages.add(item.send.sending);
        const checkpoint = item.send.checkpoint && this.#checkpoints.add(item.send.checkpoint);
        return () => {
          const verdict = sent();
          return verdict && { sent: verdict, checkpoint: checkpoint?.() };
        };
      }
      case 'receipt':
        this.#receipts.add(item.checkpoint);
        return this.#checkpoints.add(item.checkpoint);
      case 'event':
        this.#events.add(item.set.event);
        this.#eventHistory.add(item.set.event);
        return this.#checkpoints.add(item.set.checkpoint);
      case 'stream': {
        const value = this.#streams.add(item.append.value);
        const checkpoint = item.append.checkpoint && this.#checkpoints.add(item.append.checkpoint);
        return () => (value() === 'recorded' ? (checkpoint?.() ?? 'recorded') : value());
      }
      case 'outcome': {
        if (item.refill) this.#refills.add(item.outcome, item.refill);
        const start = this.#joined.get(item.outcome);
        return start ? () => outcomeWith(start()) : this.#outcomes.add(item.outcome);
      }
      case 'journal':
        // If the run has lost its workflow, its next write finds out.
        return () => 'recorded';
    }
  }
}

/** The start or send that a caller outside of workflows waits for; undefined if a workflow does. */
export function callOf(item: Item): NewWorkflow | Send | undefined {
  if (item.kind === 'start') return item.isFromOutside ? item.start : undefined;
  return item.kind === 'send' && item.isFromOutside ? item.send : undefined;
}

/** The events that the run observed before the item. */
function entriesOf(item: Item): readonly JournalEntry[] | undefined {
  switch (item.kind) {
    case 'start':
      return undefined;
    case 'child':
      return item.child.checkpoint.entries;
    case 'checkpoint':
    case 'receipt':
      return item.checkpoint.entries;
    case 'send':
      return item.send.checkpoint?.entries;
    case 'event':
      return item.set.checkpoint.entries;
    case 'stream':
      return item.append.checkpoint?.entries;
    case 'outcome':
      return item.outcome.entries;
    case 'journal':
      return [item.entry];
  }
}

/** An outcome that was part of the start's row. */
function outcomeWith(start: StartVerdict | undefined): OutcomeVerdict | undefined {
  return start && (start.kind === 'created' ? 'recorded' : 'lost');
}

/** Workflows that start and end in this commit without a checkpoint: one insert instead of an insert and an update. */
function outcomesWithTheirStart(entries: readonly Entry<Item, Verdict>[]): Map<string, Outcome> {
  const started = new Map<string, string | null>();
  const ended = new Map<string, Outcome>();
  for (const { item } of entries) {
    if (item.kind === 'start' && !started.has(item.start.workflowID))
      started.set(item.start.workflowID, item.start.owner);
    else if (item.kind === 'start') started.set(item.start.workflowID, null);
    else if (item.kind === 'outcome' && started.get(item.outcome.workflowID) === item.outcome.owner) {
      ended.set(item.outcome.workflowID, item.outcome);
    } else if (item.kind !== 'outcome') started.delete(writerOf(item)?.workflowID ?? '');
  }
  return ended;
}

/** The run that an item comes from, and whose ownership it depends on. */
export function writerOf(item: Exclude<Item, { kind: 'start' }>): Owned | undefined {
  switch (item.kind) {
    case 'child':
      return ownerOf(item.child.checkpoint);
    case 'checkpoint':
    case 'receipt':
      return ownerOf(item.checkpoint);
    case 'send':
      return item.send.sending.sender;
    case 'event':
      return item.set.event;
    case 'stream':
      return item.append.value;
    case 'outcome':
      return item.outcome;
    case 'journal':
      return { workflowID: item.entry.workflowID, owner: item.entry.owner };
  }
}

/** The existing workflows whose rows the item locks. */
export function workflowsOf(item: Item): string[] {
  const writer = item.kind === 'start' ? undefined : writerOf(item);
  const own = writer ? [writer.workflowID] : [];
  if (item.kind === 'send') own.push(item.send.sending.message.destinationID);
  return own;
}

function ownerOf({ owner, step }: Checkpoint): Owned {
  return { workflowID: step.workflowID, owner };
}

/** The payload of an item in characters, to bound the size of a commit. */
export function weigh(item: Item): number {
  switch (item.kind) {
    case 'start':
      return item.start.inputs?.length ?? 0;
    case 'child':
      return item.child.start.inputs?.length ?? 0;
    case 'checkpoint':
    case 'receipt':
      return (item.checkpoint.step.output?.length ?? 0) + (item.checkpoint.step.error?.length ?? 0);
    case 'send':
      return item.send.sending.message.text.length;
    case 'event':
      return item.set.event.text.length;
    case 'stream':
      return item.append.value.text.length;
    case 'outcome':
      return (item.outcome.output?.length ?? 0) + (item.outcome.error?.length ?? 0);
    case 'journal':
      return item.entry.details?.length ?? 0;
  }
}
