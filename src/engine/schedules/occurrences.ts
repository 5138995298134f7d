// Fires the occurrences of schedules that are due by an estimate of the database's clock, and tells which of them were too
// early by the clock itself.
import { enqueuedWorkflow } from '../../control/queues/enqueue.js';
import { workflowOf } from '../../control/schedules/schedules.js';
import { occurrenceID, type ScheduleRecord } from '../../model/schedules.js';
import { INTERNAL_QUEUE } from '../../store/runs/lifecycle.js';
import { fireCodeOccurrence, type Fired, type Firing, fireOccurrences } from '../../store/schedules/schedule-firing.js';
import type { NewWorkflow } from '../../store/runs/workflows.js';
import { abortable } from '../../base/abortable.js';
import { announceChanged } from '../../control/notify/announcements.js';
import type { Runtime } from '../runtime.js';
import type { FoundCodeSchedule, ScheduleEntry } from './schedule-entry.js';

export interface OccurrencesOptions {
  readonly runtime: Runtime;
  /** The database's clock, as far as it is known. */
  now(): number;
  /** Learns the database's clock from an answer. */
  readonly askTime: <T extends { readonly now: number }>(ask: () => Promise<T>) => Promise<T>;
  /** Workflows were put into queues. */
  readonly announceQueued: (workflows: readonly NewWorkflow[]) => void;
}

/** Occurrences fired in one commit. */
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
   * Fires the occurrences of all entries: the first of each together, then the second of each, and so on. Tells how long
   * it is until the first of those that were too early is due; 0 if none was.
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
        const firedAt = await this.#fireTogether(chunk, signal);
        for (const { entry, dueAt } of chunk) {
          if (dueAt <= firedAt) entry.settle(dueAt);
          else early.set(entry, dueAt - firedAt);
        }
      }
      if ((round + 1) % 100 === 0) {
        this.#options.runtime.logger.info(`Making up for missed runs of schedules: ${round + 1} of ${rounds} done.`);
      }
    }
    for (const { entry, times } of missed) if (times.length === 0) entry.settle(now);
    return early.size === 0 ? 0 : Math.min(...early.values());
  }

  #timesOf(entry: ScheduleEntry, now: number): number[] {
    const { times, dropped } = entry.due(now);
    const { logger } = this.#options.runtime;
    if (dropped) {
      logger.warn(`Schedule "${entry.name}" has missed too many runs; only the last ${times.length} are made up for.`);
    } else if (times.length > 1) {
      logger.info(`Schedule "${entry.name}" has missed ${times.length} runs; they are made up for.`);
    }
    return times;
  }

  /** Fires those that are due. Tells what time it was by the database's clock: what is due later is not done with. */
  async #fireTogether(occurrences: readonly Occurrence[], signal: AbortSignal): Promise<number> {
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

  /** Undefined if the schedule's context cannot be read, which must not keep the others from being fired. */
  async #firingOf({ entry, dueAt }: Occurrence, record: ScheduleRecord): Promise<Firing | undefined> {
    const { codec, applicationName, logger } = this.#options.runtime;
    try {
      const workflow = await workflowOf({ codec, applicationName }, record, dueAt);
      const isCancellingPrevious = record.overlap === 'cancelPrevious';
      return { scheduleName: entry.name, dueAt, isCancellingPrevious, workflow };
    } catch (error) {
      logger.warn(`Schedule "${entry.name}" is not fired, its context cannot be read: ${(error as Error).message}`);
      return undefined;
    }
  }

  async #fireStored(firings: readonly Firing[], signal: AbortSignal): Promise<number> {
    const { runtime, askTime, announceQueued } = this.#options;
    const { bus, database } = runtime;
    let attempts = 0;
    const fired = await runtime.retrying((): Promise<Fired> => {
      attempts += 1;
      return askTime(() => fireOccurrences(database, firings));
    }, signal);
    // After a commit whose answer was lost, the rows may be ours or a peer's.
    const isMine = ({ workflow }: Firing): boolean => attempts > 1 || fired.creators.has(workflow.creator);
    announceQueued(firings.filter(isMine).map(({ workflow }) => workflow));
    // The runs that the next one replaces.
    if (fired.cancelledIDs.length > 0) await abortable(announceChanged(bus, fired.cancelledIDs), signal);
    return fired.now;
  }

  async #workflowOfCode({ entry, dueAt }: Occurrence, schedule: FoundCodeSchedule): Promise<NewWorkflow> {
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
    const { runtime, askTime, announceQueued } = this.#options;
    const state = { ...stateOf(entry.name), value: String(dueAt), updateTime: dueAt };
    const { now } = await runtime.retrying(
      () => askTime(() => fireCodeOccurrence(runtime.database, { workflow, dueAt }, state)),
      signal,
    );
    if (dueAt <= now) announceQueued([workflow]);
    return now;
  }
}

/** How far a schedule in the code has come. */
export function stateOf(name: string): { service: string; workflowFnName: string; key: string } {
  return { service: 'dbos.scheduler', workflowFnName: name, key: 'lastState' };
}
