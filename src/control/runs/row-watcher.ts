// Waiting for rows that others write, in this process or another. All waiters for one kind of row share its queries,
// which run when a wait begins, after a wake-up, and now and then in case a wake-up was lost.
import { type Clock, sleep } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { Service } from '../../base/service.js';

export interface RowWatcherOptions<Question, Finding> {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly pollMs: number;
  /** What there is for each of the questions, in their order; undefined where there is nothing yet. */
  look(questions: readonly Question[]): Promise<readonly (Finding | undefined)[]>;
  /** Throws if the question cannot be asked: in a shared query it would fail all others. */
  check?(question: Question): void;
  /** The keys that wake the question up. */
  keysOf(question: Question): readonly string[];
  /** Lets other processes know that this one waits; repeated with every poll. */
  announce?(question: Question): void;
  /** Repeats a look until the database is back or the operator ends. */
  retrying<T>(look: () => Promise<T>): Promise<T>;
  /** Wraps a wait: the caller cannot do anything else meanwhile. */
  whileWaiting<T>(promise: Promise<T>): Promise<T>;
}

export interface WaitLimits {
  /** Rejects the wait with its reason. */
  readonly signal?: AbortSignal;
  /** By the operator's clock. */
  readonly deadlineAt?: number;
  /** Called once, when the first look has found nothing. */
  readonly onEmpty?: () => void;
}

interface Waiter<Question, Finding> {
  readonly question: Question;
  readonly keys: readonly string[];
  onEmpty: (() => void) | undefined;
  resolve(finding: Finding): void;
  reject(error: Error): void;
}

/** Questions in one query at most. */
const QUESTIONS_MAX = 1000;

export class RowWatcher<Question, Finding> {
  readonly #options: RowWatcherOptions<Question, Finding>;
  readonly #waiters = new Set<Waiter<Question, Finding>>();
  readonly #byKey = new Map<string, Set<Waiter<Question, Finding>>>();
  readonly #toLookUp = new Set<Waiter<Question, Finding>>();
  readonly #service: Service;
  #isLooking = false;
  #stopReason: Error | undefined;

  constructor(options: RowWatcherOptions<Question, Finding>) {
    this.#options = options;
    this.#service = new Service(
      (signal) => this.#poll(signal),
      (error) => options.logger.error(error),
    );
  }

  /** Rejects all waiters, present and future. */
  async stop(reason: Error): Promise<void> {
    this.#stopReason = reason;
    for (const waiter of this.#waiters) waiter.reject(reason);
    this.#waiters.clear();
    this.#byKey.clear();
    await this.#service.stop();
  }

  /** Resolves to what is found; rejects with the signal's reason when that aborts first. */
  wait(question: Question, limits: Omit<WaitLimits, 'deadlineAt'> = {}): Promise<Finding> {
    return this.#options.whileWaiting(this.#wait(question, limits));
  }

  #wait(question: Question, { signal, onEmpty }: Omit<WaitLimits, 'deadlineAt'>): Promise<Finding> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      if (this.#stopReason) return reject(this.#stopReason);
      this.#options.check?.(question);
      const done = (): void => signal?.removeEventListener('abort', onAbort);
      const waiter: Waiter<Question, Finding> = {
        question,
        keys: this.#options.keysOf(question),
        onEmpty,
        resolve(finding) {
          done();
          resolve(finding);
        },
        reject(error) {
          done();
          reject(error);
        },
      };
      const onAbort = (): void => {
        this.#remove(waiter);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#add(waiter);
    });
  }

  /** The same until a deadline; undefined when it has passed. Looks at least once. */
  async waitUntil(question: Question, options: WaitLimits): Promise<Finding | undefined> {
    const { deadlineAt, signal, onEmpty } = options;
    if (deadlineAt === undefined) return this.wait(question, options);
    const { clock } = this.#options;
    const remainingMs = deadlineAt - clock.now();
    signal?.throwIfAborted();
    if (remainingMs <= 0) return this.#lookOnce(question);
    const timeUp = new AbortController();
    const timer = clock.after(remainingMs, () => timeUp.abort(timeUp));
    try {
      const both = signal ? AbortSignal.any([signal, timeUp.signal]) : timeUp.signal;
      return await this.wait(question, { signal: both, onEmpty });
    } catch (error) {
      if (error !== timeUp) throw error;
      // A short time may have passed before the first look.
      return this.#lookOnce(question);
    } finally {
      timer.cancel();
    }
  }

  /** Something may have changed under this key, or under any. */
  wake(key?: string): void {
    const woken = key === undefined ? this.#waiters : this.#byKey.get(key);
    for (const waiter of woken ?? []) this.#toLookUp.add(waiter);
    this.#scheduleLook();
  }

  /** At the end of the event loop's turn, so that all waits that begin in it share the query. */
  #scheduleLook(): void {
    if (this.#toLookUp.size === 0 || this.#isLooking) return;
    this.#isLooking = true;
    setImmediate(() => void this.#look());
  }

  async #lookOnce(question: Question): Promise<Finding | undefined> {
    this.#options.check?.(question);
    return (await this.#options.retrying(() => this.#options.look([question])))[0];
  }

  async #look(): Promise<void> {
    try {
      while (this.#toLookUp.size > 0) {
        const waiters = [...this.#toLookUp].slice(0, QUESTIONS_MAX);
        for (const waiter of waiters) this.#toLookUp.delete(waiter);
        const findings = await this.#options.look(waiters.map((waiter) => waiter.question));
        waiters.forEach((waiter, index) => this.#settle(waiter, findings[index]));
      }
    } catch (error) {
      this.#options.logger.debug(`Lookup failed, retrying soon: ${(error as Error).message}`);
    } finally {
      this.#isLooking = false;
    }
  }

  #settle(waiter: Waiter<Question, Finding>, finding: Finding | undefined): void {
    if (!this.#waiters.has(waiter)) return;
    if (finding !== undefined) {
      this.#remove(waiter);
      waiter.resolve(finding);
      return;
    }
    waiter.onEmpty?.();
    waiter.onEmpty = undefined;
  }

  #add(waiter: Waiter<Question, Finding>): void {
    this.#waiters.add(waiter);
    for (const key of waiter.keys) this.#byKey.set(key, (this.#byKey.get(key) ?? new Set()).add(waiter));
    this.#options.announce?.(waiter.question);
    this.#service.start();
    this.#toLookUp.add(waiter);
    this.#scheduleLook();
  }

  #remove(waiter: Waiter<Question, Finding>): void {
    this.#waiters.delete(waiter);
    this.#toLookUp.delete(waiter);
    for (const key of waiter.keys) {
      const sharing = this.#byKey.get(key);
      sharing?.delete(waiter);
      if (sharing?.size === 0) this.#byKey.delete(key);
    }
  }

  /** Runs only while there are waiters. */
  async #poll(signal: AbortSignal): Promise<void> {
    const { clock, pollMs } = this.#options;
    while (this.#waiters.size > 0) {
      await sleep(clock, pollMs * (0.75 + Math.random() / 2), signal);
      for (const { question } of this.#waiters) this.#options.announce?.(question);
      this.wake();
    }
  }
}
