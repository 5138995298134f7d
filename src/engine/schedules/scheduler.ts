// Knows the schedules and has them fired when they are due. Every engine does so for itself; that an occurrence has one
// workflow ID makes sure that it is fired once. What is due is judged by the database's clock, so that processes whose
// clocks differ agree: here by an estimate of it, and by the database itself when it fires. What it says is too early is
// tried again when it is due.
import { sleep } from '../../base/clock.js';
import { DueLoop } from '../../base/due-loop.js';
import { RemoteClock } from '../../base/remote-clock.js';
import { Service } from '../../base/service.js';
import { TimeZones } from '../../model/cron/cron-time-zone.js';
import { DatabaseClosedError, DBOSInvalidArgumentError } from '../../model/errors/errors.js';
import type { ScheduleRecord } from '../../model/schedules.js';
import { findEventDispatchState } from '../../store/receiving/event-dispatch.js';
import { countScheduleChanges, findSchedules, readNow } from '../../store/schedules/schedules.js';
import { CHANNELS } from '../../store/notify/wakeups.js';
import type { Engine } from '../engine.js';
import { Occurrences, stateOf } from './occurrences.js';
import { type CodeSchedule, ScheduleEntry } from './schedule-entry.js';

export interface SchedulerOptions {
  readonly engine: Engine;
  readonly hasPush: boolean;
  /** Workflows of schedules were cancelled because their next run has begun. */
  onCancelled(workflowIDs: readonly string[], signal: AbortSignal): Promise<void>;
}

/** The longest sleep without asking the database what time it is. */
const SLEEP_MAX_MS = 60_000;
/** Where changes are pushed, looking without being asked only covers those of other libraries. */
const POLLS_SAVED_BY_PUSH = 10;

export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #engine: Engine;
  readonly #zones = new TimeZones();
  readonly #loop: DueLoop;
  readonly #poll: Service;
  #entries = new Map<string, ScheduleEntry>();
  readonly #codeEntries = new Map<string, ScheduleEntry>();
  readonly #databaseClock: RemoteClock;
  readonly #occurrences: Occurrences;
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
    this.#occurrences = new Occurrences({
      engine,
      now: () => this.#databaseClock.now(),
      askTime: (ask) => this.#askTime(ask),
      onCancelled: (workflowIDs, signal) => options.onCancelled(workflowIDs, signal),
    });
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
      throw new DBOSInvalidArgumentError(
        `Cannot schedule instance method ${name}: which instance should run it? Schedule a function or a static method.`,
      );
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
      const earlyMs = await this.#occurrences.fire(due, now, signal);
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

  async #pollForEver(signal: AbortSignal): Promise<void> {
    const { clock, config } = this.#engine;
    const pollMs = config.schedulerPollingIntervalMs * (this.#options.hasPush ? POLLS_SAVED_BY_PUSH : 1);
    while (!signal.aborted) {
      await sleep(clock, pollMs * (0.75 + Math.random() / 2), signal);
      await this.reload();
    }
  }
}
