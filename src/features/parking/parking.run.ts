// Parks workflows whose runs wait for long: such a run leaves memory, and any engine of the workflow's version continues it
// by replay when it is due. A sweep looks at the runs that wait, now and then.
//
// A run whose code goes on although all of its waits are suspended, because it awaits something of its own, takes its
// workflow back. So parking never changes what a workflow does.
import type { Timer } from '../../kernel/base/clock.js';
import { abortable } from '../../kernel/base/abortable.js';
import { DatabaseClosedError } from '../../kernel/errors/errors.js';
import { topics } from '../../database/notify/topics.js';
import { enqueueParked, type Park, parkWorkflows, type ParkVerdict, takeBack } from './parking.sql.js';
import { hasParkedWaits, waitKey } from './waits.sql.js';
import type { Runtime } from '../../run/runtime.js';
import type { Deadlines } from '../../run/deadlines.js';
import { defaultPace, isWorthParking, type ParkingPace } from './parking-rule.run.js';
import type { Run } from '../../run/run.js';
import type { Runs } from '../../run/runs.js';
import { findLossReason } from '../../run/loss.js';

export interface ParkingOptions {
  readonly runtime: Runtime;
  readonly runs: Runs;
  readonly deadlines: Deadlines;
  /** Workflows may have been woken. */
  findWork(): void;
  /** Whether a workflow of the queue may leave its slot. */
  mayLeave(queueName: string): boolean;
  /** Whether a workflow of the queue needs a slot to continue. */
  isLimited(queueName: string): boolean;
}

/** How long a run that was refused stays in memory at least. */
const REFUSED_MS = 2000;
/** Longer keys do not fit into an index. */
const KEY_MAX = 1000;
/** The end of the year 9999. */
const FAR_FUTURE = 253_402_300_799_999;
/** Workflows that are parked in one commit. */
const BATCH = 500;
/** How often to look whether other processes have parked workflows, until it is so. */
const PARKED_WAITS_INTERVAL_MS = 1000;
/** Peers look for delayed workflows at least this often by themselves. */
const ANNOUNCED_MS = 30_000;

export class Parking {
  readonly #options: ParkingOptions;
  readonly #runtime: Runtime;
  readonly #pace: ParkingPace;
  /** Runs that wait. Some may have continued since. */
  readonly #waiting = new Set<Run>();
  /** Runs whose code goes on while they are being parked. */
  readonly #returning = new Set<Run>();
  /** When the database last refused to park a run: a row was locked, or what it waits for was coming. */
  readonly #refusedAt = new WeakMap<Run, number>();
  /** Whether workflows that this engine knows of are parked until a row is there. */
  #hasParkedWaits = false;
  #unsubscribes: readonly (() => void)[] = [];
  #timer: Timer | undefined;
  #sweeping: Promise<void> = Promise.resolve();
  readonly #stopping = new AbortController();
  #isRunning = false;

  constructor(options: ParkingOptions) {
    this.#options = options;
    this.#runtime = options.runtime;
    this.#pace = options.runtime.parkingPace ?? defaultPace;
    options.runs.observe({
      onWaiting: (run) => {
        if (run.parkAfterMs === Infinity || run.hasReturned) return;
        this.#waiting.add(run);
        this.#arm();
      },
      onEnded: (run) => this.#waiting.delete(run),
    });
  }

  async start(): Promise<void> {
    this.#isRunning = true;
    this.#arm();
    const { bus, database, hasPush } = this.#runtime;
    if (database.dialect.name === 'postgres' && hasPush) return;
    // No trigger can notify this process of its own commits: on SQLite, or behind a pooler.
    this.#hasParkedWaits = await hasParkedWaits(database);
    const onChange = (): void => {
      if (this.#hasParkedWaits) this.#options.findWork();
    };
    const changing = [topics.messages, topics.events, topics.outcomes, topics.changes];
    this.#unsubscribes = [
      ...changing.map((topic) => bus.subscribe(topic, onChange)),
      bus.onAnything(() => void this.#findParkedWaits(), PARKED_WAITS_INTERVAL_MS),
    ];
  }

  /** Another process may have parked workflows that what this one does wakes. */
  async #findParkedWaits(): Promise<void> {
    const { database, logger } = this.#runtime;
    try {
      this.#hasParkedWaits ||= await hasParkedWaits(database);
    } catch (error) {
      logger.debug(`Cannot look for parked workflows: ${String(error)}`);
    }
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#stopping.abort(new DatabaseClosedError('Everstep is shutting down.'));
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await this.#sweeping;
  }

  #arm(): void {
    if (this.#timer || !this.#isRunning || this.#waiting.size === 0) return;
    this.#timer = this.#runtime.clock.after(this.#pace.sweepMs, () => {
      this.#sweeping = this.#sweep().finally(() => {
        this.#timer = undefined;
        this.#arm();
      });
    });
  }

  /** Parks what may be parked now. Never rejects. */
  async #sweep(): Promise<void> {
    for (const run of this.#waiting) if (run.stopReason || !run.waits.isWaiting) this.#waiting.delete(run);
    const leaving = [...this.#waiting].filter((run) => this.#parkOf(run) !== undefined);
    for (let start = 0; start < leaving.length && this.#isRunning; start += BATCH) {
      await this.#leave(leaving.slice(start, start + BATCH));
    }
  }

  /** How to park the run's workflow now; undefined if it stays. */
  #parkOf(run: Run): Park | undefined {
    const { clock, database, databaseClock } = this.#runtime;
    if (run.stopReason || run.hasReturned) return undefined;
    const refusedAt = this.#refusedAt.get(run);
    if (refusedAt !== undefined && clock.monotonic() - refusedAt < REFUSED_MS) return undefined;
    if (run.queueName !== null && !this.#options.mayLeave(run.queueName)) return undefined;
    const waits = run.waits.suspendable;
    // At its deadline the workflow is cancelled.
    const deadline = { awaited: undefined, endsAt: run.deadlineAt ?? undefined, isOperation: false, begunAt: 0 };
    const terms = {
      now: databaseClock.now(),
      monotonic: clock.monotonic(),
      parkAfterMs: run.parkAfterMs,
      msPerOperation: this.#pace.msPerOperation,
      performed: run.waits.performed,
    };
    if (waits.length === 0 || ![deadline, ...waits].every((wait) => isWorthParking(wait, terms))) return undefined;
    const awaited = waits.flatMap((wait) => wait.awaited ?? []);
    if (awaited.some((one) => waitKey(one).length > KEY_MAX)) return undefined;
    // No trigger would wake it.
    if (awaited.length > 0 && database.dialect.refused?.has('triggers')) return undefined;
    const dueAt = Math.min(...waits.map(({ endsAt }) => endsAt ?? FAR_FUTURE));
    return { workflowID: run.workflowID, owner: run.owner, dueAt, awaited };
  }

  async #leave(runs: readonly Run[]): Promise<void> {
    const leaving: Leaving[] = [];
    for (const run of runs) {
      // Some may have continued while others were being parked.
      const park = this.#parkOf(run);
      if (!park) continue;
      this.#waiting.delete(run);
      run.waits.onReturn = () => this.#returning.add(run);
      run.waits.suspend();
      leaving.push({ run, park });
    }
    const verdicts = leaving.length === 0 ? [] : await this.#park(leaving);
    leaving.forEach(({ run, park }, index) => this.#settle(run, park, verdicts?.[index]));
  }

  async #park(leaving: readonly Leaving[]): Promise<ParkVerdict[] | undefined> {
    const { database, logger } = this.#runtime;
    const { signal } = this.#stopping;
    const parks = leaving.map(({ park }) => park);
    try {
      // What a run has written must be durable before another process continues from it.
      await abortable(Promise.all(leaving.flatMap(({ run }) => run.lastWrite ?? [])), signal);
      return await this.#runtime.retrying(() => parkWorkflows(database, parks), signal);
    } catch (error) {
      // At a shutdown. If it has committed all the same, the runs find that they have lost their workflows.
      logger.debug(`Workflows were not parked: ${String(error)}`);
      return undefined;
    }
  }

  #settle(run: Run, { dueAt, awaited }: Park, verdict: ParkVerdict | undefined): void {
    const { bus, databaseClock } = this.#runtime;
    if (verdict !== 'parked') {
      this.#returning.delete(run);
      run.waits.onReturn = undefined;
      if (verdict === 'lost') run.doubtOwnership();
      run.waits.resume();
      this.#refusedAt.set(run, this.#runtime.clock.monotonic());
      this.#waiting.add(run);
      return;
    }
    if (awaited.length > 0) this.#hasParkedWaits = true;
    this.#options.runs.leave(run);
    // The run's own timer is gone.
    if (run.deadlineAt !== null) this.#options.deadlines.wake();
    if (dueAt - databaseClock.now() <= ANNOUNCED_MS) bus.publish(topics.delays, '');
    else bus.publishHere(topics.delays, '');
    const isReturning = this.#returning.delete(run);
    run.waits.onReturn = () => void this.#return(run);
    if (isReturning) void this.#return(run);
  }

  /** The run's code goes on. Its workflow is taken back, unless another run has it by now or it needs a slot first. */
  async #return(run: Run): Promise<void> {
    run.waits.onReturn = undefined;
    run.hasReturned = true;
    const { database } = this.#runtime;
    try {
      const needsSlot = run.queueName !== null && this.#options.isLimited(run.queueName);
      const isBack = needsSlot
        ? await this.#enqueue(run)
        : await this.#runtime.retrying(() => takeBack(database, run), this.#stopping.signal);
      if (!isBack) run.stop(await findLossReason(run));
      else this.#options.runs.comeBack(run);
    } catch (error) {
      run.stop(error as Error);
    }
    // Another program may have taken it meanwhile.
    run.doubtOwnership();
    if (!run.stopReason) this.#options.deadlines.watch(run);
    run.waits.resume();
  }

  /** The slot of the run is another's by now. The run that is claimed next replays the workflow. */
  async #enqueue({ workflowID, owner }: Run): Promise<false> {
    const { bus, database } = this.#runtime;
    const enqueued = await this.#runtime.retrying(
      () => enqueueParked(database, { workflowID, owner }),
      this.#stopping.signal,
    );
    bus.publishAll(topics.work, enqueued);
    return false;
  }
}

interface Leaving {
  readonly run: Run;
  readonly park: Park;
}
