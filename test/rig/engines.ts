// Launched engines for tests, shut down when the test ends.
import { onTestFinished } from 'vitest';
import { internals } from '../../src/kernel/base/internals.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import type { DBOSConfig } from '../../src/run/config/config.js';
import type { Engine } from '../../src/run/engine.js';
import { createDBOS, type DBOSInstance, type TestSettings } from '../../src/faces/library/dbos.js';
import type { TestDialect } from './dialects.js';
import { parkAfterMs, parkingSettings } from './parking.js';

export interface TestEngine {
  readonly DBOS: DBOSInstance;
  readonly url: string;
}

/** An instance of its own on a fresh database, not launched yet. */
export async function createEngine(
  dialect: TestDialect,
  config: Partial<DBOSConfig> = {},
  settings?: TestSettings,
): Promise<TestEngine> {
  const url = config.systemDatabaseUrl ?? (await dialect.createURL());
  const DBOS = createDBOS({ ...parkingSettings, ...settings });
  // Most tests of waits move a clock by hand and look at the run in memory. Those of parking ask for it.
  DBOS.setConfig({ name: 'test', systemDatabaseUrl: url, logger: silentLogger, parkAfterMs, ...config });
  onTestFinished(() => DBOS.shutdown());
  return { DBOS, url };
}

/** The engine behind a launched instance. */
export function engineOf(DBOS: DBOSInstance): Engine {
  return DBOS[internals].engineFor('the test');
}
