// Two generations of one application on one database, in one process: what the first leaves unfinished, the second goes
// on with. And a way for a workflow to be in the middle of something when its process ends.
import { deferred } from '../../src/kernel/base/deferred.js';
import type { DBOSConfig } from '../../src/run/config/config.js';
import type { DBOSInstance, TestSettings } from '../../src/faces/library/dbos.js';
import type { TestDialect } from '../rig/dialects.js';
import { createEngine, type TestEngine } from '../rig/engines.js';
import { ManualClock } from '../rig/manual-clock.js';

export interface Generations {
  readonly first: DBOSInstance;
  readonly second: DBOSInstance;
  readonly url: string;
}

/** Two engines, not launched. They have the same version, unless told otherwise. */
export async function createGenerations(
  dialect: TestDialect,
  config: Partial<DBOSConfig> = {},
  settings?: TestSettings,
): Promise<Generations> {
  const shared = { applicationVersion: 'v1', ...config };
  const { DBOS: first, url } = await createEngine(dialect, shared, settings);
  const { DBOS: second } = await createEngine(dialect, { ...shared, systemDatabaseUrl: url }, settings);
  return { first, second, url };
}

/**
 * An engine for which time stands still, like a process that hangs: it hears of nothing and claims nothing but what is
 * there at its launch, and its runs go on when the test lets them.
 */
export function createHangingEngine(dialect: TestDialect, config: Partial<DBOSConfig> = {}): Promise<TestEngine> {
  const hanging = { applicationVersion: 'v1', executorID: 'one', useListenNotify: false, ...config };
  return createEngine(dialect, hanging, { clock: new ManualClock(Date.now()) });
}

/** Two engines with one executor ID. The first hangs; launching the second takes its workflows over. */
export async function createZombie(dialect: TestDialect): Promise<Generations> {
  const { DBOS: first, url } = await createHangingEngine(dialect);
  const { DBOS: second } = await createEngine(dialect, {
    applicationVersion: 'v1',
    executorID: 'one',
    systemDatabaseUrl: url,
  });
  return { first, second, url };
}

/** A place at which code stops until it is let go, or for ever. */
export interface Halt {
  /** Resolves when code has come to the place. */
  readonly reached: Promise<void>;
  /** To be awaited at the place. */
  here(): Promise<void>;
  release(): void;
}

export function newHalt(): Halt {
  const reached = deferred<void>();
  const released = deferred<void>();
  return {
    reached: reached.promise,
    here() {
      reached.resolve();
      return released.promise;
    },
    release: () => released.resolve(),
  };
}

/** The error that a promise is rejected with. */
export async function failureOf(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  try {
    await promise;
  } catch (error) {
    return error as Error & Record<string, unknown>;
  }
  throw new Error('The promise was expected to reject.');
}
