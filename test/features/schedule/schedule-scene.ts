// What the tests of schedules with several engines have in common.
import type { DLogger } from '../../../src/kernel/base/log.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { DBOSInstance, TestSettings } from '../../../src/faces/library/dbos.js';
import type { Sql } from '../../../src/kernel/sql/sql.js';
import type { TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { type ManualClock, until } from '../../rig/manual-clock.js';

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
/** A full hour. */
export const START = Date.UTC(2027, 0, 4, 12, 0, 0);

/** The runs of all engines of a test, as `<engine> <minutes and seconds>`. */
export type Runs = string[];

/** Registers a workflow for schedules that notes when it was due. */
export function register(DBOS: DBOSInstance, engine: string, runs: Runs) {
  return DBOS.registerWorkflow(
    async (at: Date) => {
      runs.push(`${engine} ${at.toISOString().slice(11, 19)}`);
    },
    { name: 'tick' },
  );
}

/** Engines on one database, not launched. */
export async function setup(
  dialect: TestDialect,
  { config = {}, settings }: { readonly config?: Partial<DBOSConfig>; readonly settings: readonly TestSettings[] },
) {
  const url = config.systemDatabaseUrl ?? (await dialect.createURL());
  const runs: Runs = [];
  const engines: { readonly DBOS: DBOSInstance; readonly tick: (at: Date) => Promise<void> }[] = [];
  for (const [index, one] of settings.entries()) {
    // The clocks leap over hours: no engine shall be taken for dead meanwhile.
    const lasting = { applicationVersion: 'v1', leaseSeconds: 86_400, ...config, systemDatabaseUrl: url };
    const { DBOS } = await createEngine(dialect, lasting, one);
    engines.push({ DBOS, tick: register(DBOS, `e${index}`, runs) });
  }
  const [first, second] = engines;
  if (!first) throw new Error('Give settings for one engine at least.');
  return { url, runs, first, second: second ?? first, dues: () => runs.map((run) => run.slice(3)).sort() };
}

/** Lets happen what needs no time. */
export async function turns(count = 50): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A logger that keeps its lines. */
export function keepingLogger(): { readonly logger: DLogger; readonly lines: string[] } {
  const lines: string[] = [];
  const keep = (level: string) => (entry: unknown) => void lines.push(`${level} ${String(entry)}`);
  return { lines, logger: { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') } };
}

export function inTables(DBOS: DBOSInstance, statement: Sql) {
  return engineOf(DBOS).runtime.database.run(statement);
}

/** Waits for a condition while a little time passes: engines that share a queue leave each other moments to claim. */
export async function untilIn(clock: ManualClock, condition: () => boolean): Promise<void> {
  // Less than the time to the next occurrence, however long the database takes.
  const end = clock.now() + MINUTE / 2;
  await until(async () => {
    if (condition()) return true;
    if (clock.now() < end) clock.advance(10);
    await turns(5);
    return condition();
  });
}
