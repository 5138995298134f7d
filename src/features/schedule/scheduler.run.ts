// Loads the schedules and fires them when they are due. Every engine does; the workflow ID of an occurrence makes sure
// that it fires once. The database's clock decides what is due, so that processes whose clocks differ agree: first by an
// estimate of it, then by the database itself. An occurrence that was too early is retried.
import { sleep } from '../../kernel/base/clock.js';
import { DueLoop } from '../../kernel/base/due-loop.js';
import { Mutex } from '../../kernel/base/mutex.js';
import { RemoteClock } from '../../kernel/base/remote-clock.js';
import { Service } from '../../kernel/base/service.js';
import { Throttle } from '../../kernel/base/throttle.js';
import { TimeZones } from './cron/cron-time-zone.js';
import { DatabaseClosedError, DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import type { ScheduleRecord } from './schedule.js';
import { findEventDispatchState } from '../../run/rows/event-dispatch.js';
import { countScheduleChanges, findSchedules } from './schedules.sql.js';
import { readNow } from '../../database/now.js';
import { topics } from '../../database/notify/topics.js';
import type { NewWorkflow } from '../../run/rows/workflows.js';
import type { Runtime } from '../../run/runtime.js';
import { Occurrences, stateOf } from './occurrences.run.js';
import { type CodeSchedule, ScheduleEntry } from './schedule-entry.run.js';
import { ShownTimers } from './shown-timers.run.js';

export interface SchedulerOptions {
  readonly runtime: Runtime;
  /** Announces workflows that were enqueued. */
  readonly announceQueued: (workflows: readonly NewWorkflow[]) => void;
}

/** The longest sleep without syncing with the database's clock. */
const SLEEP_MAX_MS = 60_000;
/** Where changes are pushed, polling only has to find those that other libraries make. */
const POLL_FACTOR_WITH_PUSH = 10;
/** On SQLite a busy peer wakes us many times a second. */
const REFRESH_INTERVAL_MS = 250;
/** At most one read in this time, whatever peers announce. */
const PEER_RELOAD_INTERVAL_MS = 50;
/** With more names, all schedules are read. */
const NAMES_MAX = 100;
const ANY: readonly string[] = [''];

export class Scheduler {
  readonly #runtime: Runtime;
  readonly #zones = new TimeZones();
  readonly #loop: DueLoop;
  readonly #poll: Service;
  #entries = new Map<string, ScheduleEntry>();
  readonly #codeEntries = new Map<string, ScheduleEntry>();
  readonly #databaseClock: RemoteClock;
  readonly #occurrences: Occurrences;
  readonly #shown: ShownTimers;
  /** False after a sleep: either clock may have been adjusted meanwhile. */
  #isClockSynced = false;
  #changes = 0;
  readonly #changedByPeers = new Set<string>();
  /** Any role that may connect can send notifications: however many there are, reads are limited. */
  readonly #reloads: Throttle;
  readonly #reloading = new Mutex();
  readonly #stopping = new AbortController();
  #unsubscribes: readonly (() => void)[] = [];

  constructor({ runtime, announceQueued }: SchedulerOptions) {
    this.#runtime = runtime;
    const { clock, logger } = runtime;
    this.#databaseClock = new RemoteClock(clock);
    this.#occurrences = new Occurrences({
      runtime,
      now: () => this.#databaseClock.now(),
      syncClock: (query) => this.#syncClock(query),
      announceQueued,
    });
    this.#shown = new ShownTimers(runtime);
    this.#reloads = new Throttle(clock, PEER_RELOAD_INTERVAL_MS, () => {
      const names = [...this.#changedByPeers];
      this.#changedByPeers.clear();
      void this.reload(names);
    });
    const sweep = (signal: AbortSignal) => this.#sweep(signal);
    this.#loop = new DueLoop({ clock, logger, subject: 'Schedules', sweep, maxMs: SLEEP_MAX_MS });
    this.#poll = new Service(
      (signal) => this.#pollUntilStopped(signal),
      (error) => logger.error(error),
    );
  }

  async start(): Promise<void> {
    const { bus, registry } = this.#runtime;
    this.#unsubscribes = [
      bus.subscribe(topics.schedules, async (names, origin) => {
        if (origin === 'here') return this.#apply(names);
        for (const name of names) if (this.#changedByPeers.size <= NAMES_MAX) this.#changedByPeers.add(name);
        this.#reloads.call();
      }),
      bus.onAnything(() => void this.#reloadIfChanged(), REFRESH_INTERVAL_MS),
    ];
    await this.#reload();
    for (const schedule of registry.codeSchedules) await this.#addCodeSchedule(schedule);
    this.#loop.start();
    this.#poll.start();
  }

  /** How many schedules are in effect here. */
  get count(): number {
    return this.#entries.size + this.#codeEntries.size;
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new DatabaseClosedError('Everstep was shut down in this process.'));
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#reloads.stop();
    await Promise.all([this.#loop.stop(), this.#poll.stop()]);
    await this.#reloading.run(async () => {});
  }

  /** Other processes may have changed these schedules; '' for any. */
  async reload(names: readonly string[] = ANY): Promise<void> {
    await this.#reloadSerialized(names).catch((error: unknown) => {
      this.#runtime.logger.debug(`Cannot read the schedules: ${(error as Error).message}`);
    });
  }

  /** This process has changed schedules. Resolves when the change is in effect here. */
  #apply(names: readonly string[]): Promise<void> {
    return this.#runtime.retrying(() => this.#reloadSerialized(names), this.#stopping.signal);
  }

  /** Anything may have changed, perhaps a schedule. On Postgres, other programs do not count their changes. */
  async #reloadIfChanged(): Promise<void> {
    const { database, logger } = this.#runtime;
    try {
      if (database.dialect.name === 'postgres' || (await countScheduleChanges(database)) !== this.#changes)
        await this.reload();
    } catch (error) {
      logger.debug(`Cannot check for changed schedules: ${String(error)}`);
    }
  }

  /** One read at a time: an older result must not replace a newer one. */
  async #reloadSerialized(names: readonly string[]): Promise<void> {
    await this.#reloading.run(() => this.#reload(names));
    this.#loop.wake();
  }

  async #reload(names: readonly string[] = ANY): Promise<void> {
    const { applicationName, database } = this.#runtime;
    const { now } = await this.#syncClock(() => readNow(database));
    this.#changes = await countScheduleChanges(database);
    const isAny = names.includes('') || names.length > NAMES_MAX;
    const query = { statuses: ['ACTIVE'], applicationNames: [applicationName] };
    const records = await findSchedules(database, isAny ? query : { ...query, names });
    const entries = new Map(isAny ? [] : this.#entries);
    for (const name of names) entries.delete(name);
    for (const record of records) {
      const entry = this.#toEntry(record, now);
      if (entry) entries.set(record.scheduleName, entry);
    }
    this.#entries = entries;
  }

  /** The entry of a schedule. Keeps the existing one, with its progress, if the schedule is due at the same times. */
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
      this.#runtime.logger.warn(
        `Skipping schedule "${record.scheduleName}", which is invalid: ${(error as Error).message}`,
      );
      return undefined;
    }
  }

  async #addCodeSchedule(given: CodeSchedule): Promise<void> {
    const { registry, database } = this.#runtime;
    const registration = registry.workflowOf(given.fn, given.fn.name);
    const name = registry.keyOf(registration);
    if (registration.isInstance) {
      throw new DBOSInvalidArgumentError(
        `Cannot schedule instance method ${name}: which instance should run it? Schedule a function or a static method.`,
      );
    }
    const schedule = { ...given, registration };
    const state = schedule.automaticBackfill ? await findEventDispatchState(database, stateOf(name)) : undefined;
    const doneUntil = state?.value === undefined ? this.#databaseClock.now() : Number(state.value);
    this.#codeEntries.set(name, new ScheduleEntry(name, { kind: 'code', schedule }, { zones: this.#zones, doneUntil }));
  }

  /** Fires what is due. Returns how long it is until the next occurrence. */
  async #sweep(signal: AbortSignal): Promise<number | undefined> {
    if (this.count > 0 && !this.#isClockSynced) await this.#syncClock(() => readNow(this.#runtime.database));
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
      if (earlyMs > 0) this.#isClockSynced = false;
      return earlyMs;
    }
    this.#isClockSynced = false;
    await this.#shown.show([...this.#entries.values()], signal);
    return nextAt === Infinity ? undefined : Math.max(nextAt - this.#databaseClock.now(), 0);
  }

  async #syncClock<T extends { readonly now: number }>(query: () => Promise<T>): Promise<T> {
    const answer = await this.#databaseClock.learn(query);
    this.#isClockSynced = true;
    return answer;
  }

  async #pollUntilStopped(signal: AbortSignal): Promise<void> {
    const { clock, config, hasPush } = this.#runtime;
    const pollMs = config.schedulerPollingIntervalMs * (hasPush ? POLL_FACTOR_WITH_PUSH : 1);
    while (!signal.aborted) {
      await sleep(clock, pollMs * (0.75 + Math.random() / 2), signal);
      await this.reload();
    }
  }
}
