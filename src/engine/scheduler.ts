// Fires schedules. Every engine does so for itself; that an occurrence has one workflow ID makes sure that it is fired
// once. What is due is judged by the database's clock, so that processes whose clocks differ agree: here by an estimate of
// it, and by the database itself when it fires. What it says is too early is tried again when it is due.
import { sleep } from '../base/clock.js';
import { DueLoop } from '../base/due-loop.js';
import { RemoteClock } from '../base/remote-clock.js';
import { Service } from '../base/service.js';
import { enqueuedWorkflow } from '../control/enqueue.js';
import { workflowOf } from '../control/schedules.js';
import { TimeZones } from '../model/cron-time-zone.js';
import { DatabaseClosedError, DBOSError } from '../model/errors.js';
import { occurrenceID, type ScheduleRecord } from '../model/schedules.js';
import { findEventDispatchState } from '../store/event-dispatch.js';
import { INTERNAL_QUEUE } from '../store/lifecycle.js';
import { fireCodeOccurrence, type Fired, type Firing, fireOccurrences } from '../store/schedule-firing.js';
import { countScheduleChanges, findSchedules, readNow } from '../store/schedules.js';
import { CHANNELS } from '../store/wakeups.js';
import type { NewWorkflow } from '../store/workflows.js';
import type { Engine } from './engine.js';
import { type CodeSchedule, type FoundCodeSchedule, ScheduleEntry } from './schedule-entry.js';

export interface SchedulerOptions {
  readonly engine: Engine;
  readonly hasPush: boolean;
  /** Workflows of schedules were cancelled because their next run has begun. */
  onCancelled(workflowIDs: readonly string[], signal: AbortSignal): Promise<void>;
}

/** Occurrences fired in one commit. */
const FIRINGS_MAX = 200;
/** The longest sleep without asking the database what time it is. */
const SLEEP_MAX_MS = 60_000;
/** Where changes are pushed, looking without being asked only covers those of other libraries. */
const POLLS_SAVED_BY_PUSH = 10;

interface Occurrence {
  readonly entry: ScheduleEntry;
  readonly dueAt: number;
}

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #engine: Engine;
  readonly #zones = new TimeZones();
  readonly #loop: DueLoop;
  readonly #poll: Service;
  #entries = new Map<string, ScheduleEntry>();
  readonly #codeEntries = new Map<string, ScheduleEntry>();
  readonly #databaseClock: RemoteClock;
  /** False after a sleep: either clock may have been set meanwhile. */
  #hasAskedTime = false;
  #changes = 0;
  #reloading: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { engine } = options;
    this.#engine = engine;
    const { clock, logger } = engine;
    this.#databaseClock = new RemoteClock(clock);
    const sweep = (signal: AbortSignal) => this.#sweep(signal);
    this.#loop = new DueLoop({ clock, logger, subject: 'Schedules', sweep, maxMs: SLEEP_MAX_MS });
    this.#poll = new Service(
      (signal) => this.#pollForEver(signal),
      (error) => logger.error(error),
    );
  }

  async start(codeSchedules: Iterable<CodeSchedule>): Promise<void> {
    await this.#reload();
    for (const schedule of codeSchedules) await this.#addCodeSchedule(schedule);
    this.#loop.start();
    this.#poll.start();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new DatabaseClosedError('Everstep was shut down in this process.'));
    await Promise.all([this.#loop.stop(), this.#poll.stop()]);
    await this.#reloading;
  }

  /** Schedules may have been changed elsewhere. Without a name, any may have been. */
  async reload(name?: string): Promise<void> {
    await this.#reloadInTurn(name).catch((error: unknown) => {
      this.#engine.logger.debug(`Schedules could not be read: ${(error as Error).message}`);
    });
  }

  /** A schedule was changed here: it is in force here when this resolves, and elsewhere soon after. */
  async announceChange(name?: string): Promise<void> {
    this.#engine.store.listener.notify(CHANNELS.schedules, name ?? '');
    await this.#engine.retrying(() => this.#reloadInTurn(name), this.#stopping.signal);
  }

  /** Another process has committed something; was it a schedule? */
  async lookAround(): Promise<void> {
    const changes = await countScheduleChanges(this.#engine.store.database);
    if (changes !== this.#changes) await this.reload();
  }

  /** Reads when all reads that were asked for before are done, so that none of them overwrites it. */
  async #reloadInTurn(name: string | undefined): Promise<void> {
    const read = this.#reloading.then(() => this.#reload(name));
    this.#reloading = read.catch(() => {
      // Whoever has asked for it is told.
    });
    await read;
    this.#loop.lookAgain();
  }

  async #reload(name?: string): Promise<void> {
    const { database } = this.#engine.store;
    const { now } = await this.#askTime(() => readNow(database));
    this.#changes = await countScheduleChanges(database);
    const query = { statuses: ['ACTIVE'], applicationNames: [this.#engine.config.name] };
    const records = await findSchedules(database, name === undefined ? query : { ...query, names: [name] });
    const entries = new Map(name === undefined ? [] : this.#entries);
    if (name !== undefined) entries.delete(name);
    for (const record of records) {
      const entry = this.#toEntry(record, now);
      if (entry) entries.set(record.scheduleName, entry);
    }
    this.#entries = entries;
  }

  /** The entry of a schedule, kept as it is if the schedule is due at the same times as before. */
  #toEntry(record: ScheduleRecord, now: number): ScheduleEntry | undefined {
    const known = this.#entries.get(record.scheduleName);
    const before = known?.source.kind === 'stored' ? known.source.record : undefined;
    if (
      known &&
      before?.scheduleID === record.scheduleID &&
      before.schedule === record.schedule &&
      before.cronTimezone === record.cronTimezone
    ) {
      known.source = { kind: 'stored', record };
      return known;
    }
    const missedFrom = record.automaticBackfill && record.lastFiredAt !== null ? Date.parse(record.lastFiredAt) : NaN;
    const doneUntil = Number.isNaN(missedFrom) ? now : Math.min(missedFrom, now);
    try {
      return new ScheduleEntry(record.scheduleName, { kind: 'stored', record }, { zones: this.#zones, doneUntil });
    } catch (error) {
      this.#engine.logger.warn(
        `Schedule "${record.scheduleName}" is left out, it cannot be read: ${(error as Error).message}`,
      );
      return undefined;
    }
  }

  async #addCodeSchedule(given: CodeSchedule): Promise<void> {
    const { registry, store } = this.#engine;
    const registration = registry.workflowOf(given.fn, given.fn.name);
    const name = registry.keyOf(registration);
    if (registration.isInstance) {
      throw new DBOSError(`Cannot schedule instance method ${name}: which instance should run it?`);
    }
    const schedule = { ...given, registration };
    const state = schedule.isMakingUp ? await findEventDispatchState(store.database, stateOf(name)) : undefined;
    const doneUntil = state?.value === undefined ? this.#databaseClock.now() : Number(state.value);
    this.#codeEntries.set(name, new ScheduleEntry(name, { kind: 'code', schedule }, { zones: this.#zones, doneUntil }));
  }

  /** Fires what is due and tells how long until the next one is. */
  async #sweep(signal: AbortSignal): Promise<number | undefined> {
    if (!this.#hasAskedTime) await this.#askTime(() => readNow(this.#engine.store.database));
    const now = this.#databaseClock.now();
    let nextAt = Infinity;
    const due: ScheduleEntry[] = [];
    for (const entries of [this.#entries, this.#codeEntries]) {
      for (const entry of entries.values()) {
        const { fireAt = Infinity } = entry;
        if (fireAt <= now) due.push(entry);
        else if (fireAt < nextAt) nextAt = fireAt;
      }
    }
    if (due.length > 0) {
      const earlyMs = await this.#fireAll(due, now, signal);
      if (earlyMs > 0) this.#hasAskedTime = false;
      return earlyMs;
    }
    this.#hasAskedTime = false;
    return nextAt === Infinity ? undefined : nextAt - now;
  }

  async #askTime<T extends { readonly now: number }>(ask: () => Promise<T>): Promise<T> {
    const answer = await this.#databaseClock.learn(ask);
    this.#hasAskedTime = true;
    return answer;
  }

  /**
   * Fires the occurrences of all entries: the first of each together, then the second of each, and so on. Tells how long
   * it is until the first of those that were too early is due; 0 if none was.
   */
  async #fireAll(entries: readonly ScheduleEntry[], now: number, signal: AbortSignal): Promise<number> {
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
        const firedAt = await this.#fire(chunk, signal);
        for (const { entry, dueAt } of chunk) {
          if (dueAt <= firedAt) entry.settle(dueAt);
          else early.set(entry, dueAt - firedAt);
        }
      }
      if ((round + 1) % 100 === 0) {
        this.#engine.logger.info(`Making up for missed runs of schedules: ${round + 1} of ${rounds} done.`);
      }
    }
    for (const { entry, times } of missed) if (times.length === 0) entry.settle(now);
    return early.size === 0 ? 0 : Math.min(...early.values());
  }

  #timesOf(entry: ScheduleEntry, now: number): number[] {
    const { times, dropped } = entry.due(now);
    const { logger } = this.#engine;
    if (dropped) {
      logger.warn(`Schedule "${entry.name}" has missed too many runs; only the last ${times.length} are made up for.`);
    } else if (times.length > 1) {
      logger.info(`Schedule "${entry.name}" has missed ${times.length} runs; they are made up for.`);
    }
    return times;
  }

  /** Fires those that are due. Tells what time it was by the database's clock: what is due later is not done with. */
  async #fire(occurrences: readonly Occurrence[], signal: AbortSignal): Promise<number> {
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
    const { codec, config, logger } = this.#engine;
    try {
      const workflow = await workflowOf({ codec, applicationName: config.name }, record, dueAt);
      const isCancellingPrevious = record.overlap === 'cancelPrevious';
      return { scheduleName: entry.name, dueAt, isCancellingPrevious, workflow };
    } catch (error) {
      logger.warn(`Schedule "${entry.name}" is not fired, its context cannot be read: ${(error as Error).message}`);
      return undefined;
    }
  }

  async #fireStored(firings: readonly Firing[], signal: AbortSignal): Promise<number> {
    const { engine } = this.#options;
    let attempts = 0;
    const fired = await engine.retrying((): Promise<Fired> => {
      attempts += 1;
      return this.#askTime(() => fireOccurrences(engine.store.database, firings));
    }, signal);
    // After a commit whose answer was lost, nobody can tell whose rows they are.
    const isMine = ({ workflow }: Firing): boolean => attempts > 1 || fired.creators.has(workflow.creator);
    engine.announceQueued(firings.filter(isMine).map(({ workflow }) => workflow));
    if (fired.cancelledIDs.length > 0) await this.#options.onCancelled(fired.cancelledIDs, signal);
    return fired.now;
  }

  async #workflowOfCode({ entry, dueAt }: Occurrence, schedule: FoundCodeSchedule): Promise<NewWorkflow> {
    const { codec, config, registry } = this.#engine;
    const { registration, queueName } = schedule;
    const args = [new Date(dueAt), new Date(this.#databaseClock.now())];
    const { text, serialization } = await codec.encodeInputs(args, registration.config.serialization);
    return enqueuedWorkflow({
      workflowID: occurrenceID(entry.name, dueAt),
      name: registration.name,
      className: registry.classNameFor(registration) || null,
      inputs: text,
      serialization,
      queueName: queueName ?? INTERNAL_QUEUE,
      applicationName: config.name,
    });
  }

  async #fireOfCode({ entry, dueAt }: Occurrence, workflow: NewWorkflow, signal: AbortSignal): Promise<number> {
    const { engine } = this.#options;
    const state = { ...stateOf(entry.name), value: String(dueAt), updateTime: dueAt };
    const { now } = await engine.retrying(
      () => this.#askTime(() => fireCodeOccurrence(engine.store.database, { workflow, dueAt }, state)),
      signal,
    );
    if (dueAt <= now) engine.announceQueued([workflow]);
    return now;
  }

  async #pollForEver(signal: AbortSignal): Promise<void> {
    const { clock, config } = this.#engine;
    const pollMs = config.schedulerPollingIntervalMs * (this.#options.hasPush ? POLLS_SAVED_BY_PUSH : 1);
    while (!signal.aborted) {
      await sleep(clock, pollMs * (0.75 + Math.random() / 2), signal);
      await this.reload();
    }
  }
}

function stateOf(name: string): { service: string; workflowFnName: string; key: string } {
  return { service: 'dbos.scheduler', workflowFnName: name, key: 'lastState' };
}
