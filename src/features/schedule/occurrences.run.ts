// Fires the occurrences that are due by an estimate of the database's clock. The database checks them against its own
// clock, and those that are too early stay due.
import { enqueuedWorkflow } from '../queue/enqueue.js';
import { workflowOf } from './schedules.js';
import { occurrenceID, type ScheduleRecord } from './schedule.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { fireCodeOccurrence, type Fired, type Firing, fireOccurrences } from './schedule-firing.sql.js';
import type { NewWorkflow } from '../../run/rows/workflows.js';
import { abortable } from '../../kernel/base/abortable.js';
import { announceChanged } from '../../operator/announcements.js';
import type { Runtime } from '../../run/runtime.js';
import type { RegisteredCodeSchedule, ScheduleEntry } from './schedule-entry.run.js';

export interface OccurrencesOptions {
  readonly runtime: Runtime;
  /** The estimate of the database's clock. */
  now(): number;
  /** Runs a query that returns the database's time, and updates the estimate with it. */
  readonly syncClock: <T extends { readonly now: number }>(query: () => Promise<T>) => Promise<T>;
  /** Announces workflows that were enqueued. */
  readonly announceQueued: (workflows: readonly NewWorkflow[]) => void;
}

/** Occurrences per commit. */
const FIRINGS_MAX = 200;

interface Occurrence {
  readonly entry: ScheduleEntry;
  readonly dueAt: number;
}

export class Occurrences {
  readonly #options: OccurrencesOptions;

  constructor(options: OccurrencesOptions) {
    this.#options = options;
  }

  /**
   * Fires the due occurrences of all entries: the first of each, then the second of each, and so on. Returns the time
   * until the earliest of those that were too early is due; 0 if none was.
   */
  async fire(entries: readonly ScheduleEntry[], now: number, signal: AbortSignal): Promise<number> {
    const missed = entries.map((entry) => ({ entry, times: this.#timesOf(entry, now) }));
    const rounds = Math.max(...missed.map(({ times }) => times.length));
    const early = new Map<ScheduleEntry, number>();
    for (let round = 0; round < rounds; round += 1) {
      const occurrences = missed.flatMap(({ entry, times }): Occurrence[] => {
        const dueAt = times[round];
        return dueAt === undefined || early.has(entry) ? [] : [{ entry, dueAt }];
      });
      for (let start = 0; start < occurrences.length; start += FIRINGS_MAX) {
        signal.throwIfAborted();
        const chunk = occurrences.slice(start, start + FIRINGS_MAX);
        const firedAt = await this.#fireBatch(chunk, signal);
        for (const { entry, dueAt } of chunk) {
          if (dueAt <= firedAt) entry.advanceTo(dueAt);
          else early.set(entry, dueAt - firedAt);
        }
      }
      if ((round + 1) % 100 === 0) {
        this.#options.runtime.logger.info(`Backfilling missed runs of schedules: ${round + 1} of ${rounds} done.`);
      }
    }
    for (const { entry, times } of missed) if (times.length === 0) entry.advanceTo(now);
    return early.size === 0 ? 0 : Math.min(...early.values());
  }

  #timesOf(entry: ScheduleEntry, now: number): number[] {
    const { times, dropped } = entry.due(now);
    const { logger } = this.#options.runtime;
    if (dropped) {
      logger.warn(`Schedule "${entry.name}" has missed too many runs. Backfilling only the last ${times.length}.`);
    } else if (times.length > 1) {
      logger.info(`Schedule "${entry.name}" has missed ${times.length} runs. Backfilling them.`);
    }
    return times;
  }

  /** Fires those that are due. Returns the database's time: occurrences that are due later were not fired. */
  async #fireBatch(occurrences: readonly Occurrence[], signal: AbortSignal): Promise<number> {
    const firings: Firing[] = [];
    const ofCode: { readonly occurrence: Occurrence; readonly workflow: NewWorkflow }[] = [];
    for (const occurrence of occurrences) {
      const { source } = occurrence.entry;
      if (source.kind === 'code') {
        ofCode.push({ occurrence, workflow: await this.#workflowOfCode(occurrence, source.schedule) });
      } else {
        const firing = await this.#firingOf(occurrence, source.record);
        if (firing) firings.push(firing);
      }
    }
    const times: number[] = [];
    if (firings.length > 0) times.push(await this.#fireStored(firings, signal));
    for (const { occurrence, workflow } of ofCode) times.push(await this.#fireOfCode(occurrence, workflow, signal));
    return Math.min(...times);
  }

  /** Undefined if the schedule's context cannot be decoded, which must not keep the others from firing. */
  async #firingOf({ entry, dueAt }: Occurrence, record: ScheduleRecord): Promise<Firing | undefined> {
    const { codec, applicationName, logger } = this.#options.runtime;
    try {
      const workflow = await workflowOf({ codec, applicationName }, record, dueAt);
      const isCancellingPrevious = record.overlap === 'cancelPrevious';
      return { scheduleName: entry.name, dueAt, isCancellingPrevious, workflow };
    } catch (error) {
      logger.warn(`Skipping schedule "${entry.name}": its context cannot be decoded: ${(error as Error).message}`);
      return undefined;
    }
  }

  async #fireStored(firings: readonly Firing[], signal: AbortSignal): Promise<number> {
    const { runtime, syncClock, announceQueued } = this.#options;
    const { bus, database } = runtime;
    let attempts = 0;
    const fired = await runtime.retrying((): Promise<Fired> => {
      attempts += 1;
      return syncClock(() => fireOccurrences(database, firings));
    }, signal);
    // If the answer to a commit was lost, we can't tell our rows from a peer's: announce all.
    const isMine = ({ workflow }: Firing): boolean => attempts > 1 || fired.creators.has(workflow.creator);
    announceQueued(firings.filter(isMine).map(({ workflow }) => workflow));
    // With overlap `cancelPrevious`: the runs that these occurrences replace.
    if (fired.cancelledIDs.length > 0) await abortable(announceChanged(bus, fired.cancelledIDs), signal);
    return fired.now;
  }

  async #workflowOfCode({ entry, dueAt }: Occurrence, schedule: RegisteredCodeSchedule): Promise<NewWorkflow> {
    const { applicationName, codec, registry } = this.#options.runtime;
    const { registration, queueName } = schedule;
    const args = [new Date(dueAt), new Date(this.#options.now())];
    const { text, serialization } = await codec.encodeInputs(args, registration.config.serialization);
    return enqueuedWorkflow({
      workflowID: occurrenceID(entry.name, dueAt),
      name: registration.name,
      className: registry.classNameFor(registration) || null,
      inputs: text,
      serialization,
      queueName: queueName ?? INTERNAL_QUEUE,
      applicationName,
    });
  }

  async #fireOfCode({ entry, dueAt }: Occurrence, workflow: NewWorkflow, signal: AbortSignal): Promise<number> {
    const { runtime, syncClock, announceQueued } = this.#options;
    const state = { ...stateOf(entry.name), value: String(dueAt), updateTime: dueAt };
    const { now } = await runtime.retrying(
      () => syncClock(() => fireCodeOccurrence(runtime.database, { workflow, dueAt }, state)),
      signal,
    );
    if (dueAt <= now) announceQueued([workflow]);
    return now;
  }
}

/** The key under which the progress of a code schedule is stored. */
export function stateOf(name: string): { service: string; workflowFnName: string; key: string } {
  return { service: 'dbos.scheduler', workflowFnName: name, key: 'lastState' };
}
