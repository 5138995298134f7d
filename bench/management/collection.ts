// Garbage collection, and retention with an archive, of a million workflows beside a load in the same process.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock, Timer } from '../../src/kernel/base/clock.js';
import { internals } from '../../src/kernel/base/internals.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { fileArchive } from '../../src/features/retention/file-archive.js';
import { applyRetention } from '../../src/features/retention/retention-policy.js';
import { garbageCollect } from '../../src/features/retention/retention.js';
import type { Operator } from '../../src/operator/operator.js';
import { createDBOS } from '../../src/faces/library/dbos.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import type { Databases } from '../engine/databases.js';
import { fillLargeTable } from '../queues/claim-rows.js';
import { type Measurement, median, perSecond, printTable } from '../report.js';
import { timeStatements } from './statements.js';

/** BENCH_ROWS=100000 for a quick look. */
const ROWS = Number(process.env['BENCH_ROWS'] ?? 1_000_000);
/** BENCH_REST=0 for how fast it can be. */
const REST_FACTOR = process.env['BENCH_REST'] === undefined ? undefined : Number(process.env['BENCH_REST']);
const IN_FLIGHT = 50;
const STEPS = 2;
const WARM_UP_MS = 3_000;
const TURN_MS = 2_000;
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 20);
/** After all that was filled in, and before the load. */
const CUTOFF = 1_710_000_000_000;

interface Progress {
  readonly workflows: number;
}

interface Way {
  readonly title: string;
  collect(operator: Operator, onProgress: (progress: Progress) => void): Promise<Progress>;
}

export async function benchCollection(databases: Databases): Promise<void> {
  await measureOnBoth(databases, {
    title: 'garbage collection',
    collect: (operator, onProgress) => garbageCollect(operator, { cutoffEpochTimestampMs: CUTOFF, onProgress }),
  });
}

export async function benchRetention(databases: Databases): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-bench-'));
  try {
    await measureOnBoth(databases, {
      title: 'retention with an archive of files',
      collect: (operator, onProgress) =>
        applyRetention(
          operator,
          { completed: '1 day' },
          { archive: fileArchive(folder), restFactor: REST_FACTOR, onProgress },
        ),
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function measureOnBoth(databases: Databases, way: Way): Promise<void> {
  await measure(await databases.postgres(), way);
  await measure(databases.sqlite(), way);
}

async function measure(url: string, way: Way): Promise<void> {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logger: silentLogger });
  const noop = DBOS.registerStep(async (step: number) => step, { name: 'noop' });
  const work = DBOS.registerWorkflow(
    async () => {
      for (let step = 0; step < STEPS; step += 1) await noop(step);
    },
    { name: 'work' },
  );
  await DBOS.launch();
  const engine = DBOS[internals].operator;
  await fillLargeTable(engine.database, { from: 0, completed: ROWS, waiting: 0 });
  await engine.database.run(sql`
    INSERT INTO ${table('operation_outputs')} (workflow_uuid, function_id, function_name, output, retention_timestamp)
    SELECT w.workflow_uuid, 0, 'noop', '{"json":1}', w.created_at FROM ${table('workflow_status')} AS w`);

  const load = startLoad(() => work());
  await pause(WARM_UP_MS);
  const { database, times } = timeStatements(engine.database);
  const gate = new Gate(engine.clock);
  const operator = {
    database,
    codec: engine.codec,
    clock: gate,
    databaseClock: engine.databaseClock,
    logger: engine.logger,
    applicationName: null,
    watchers: engine.watchers,
    bus: engine.bus,
    retrying: <T>(operation: () => Promise<T>): Promise<T> => engine.retrying(operation),
  };
  const memory = watchMemory();
  const startedAt = performance.now();
  let isOver = false;
  let collected = 0;
  const onProgress = (progress: Progress) => (collected = progress.workflows);
  const collecting = way.collect(operator, onProgress).finally(() => (isOver = true));
  // In turns, because other work on the machine would otherwise be taken for an effect of the collection.
  const turns = { beside: 0, alone: 0 };
  let rounds = 0;
  for (; rounds < ROUNDS && !isOver; rounds += 1) {
    turns.beside += await load.countFor(TURN_MS);
    gate.close();
    turns.alone += await load.countFor(TURN_MS);
    gate.open();
  }
  const collectedBeside = collected;
  await load.stop();
  gate.hurry();
  const { workflows } = await collecting;
  const elapsedMs = performance.now() - startedAt - rounds * TURN_MS;
  const grownMB = memory.stop();
  await DBOS.shutdown();

  const rate = (count: number): string => perSecond(count, rounds * TURN_MS);
  const lines: Measurement[] = [
    {
      label: 'collected',
      value: workflows.toLocaleString('en'),
      ratio: `${perSecond(workflows, elapsedMs)}, without rests once the load is over`,
    },
    { label: 'beside the load', value: rate(collectedBeside) },
    { label: 'took', value: `${(elapsedMs / 1000).toFixed(0)} s`, ratio: `${times.length} statements and commits` },
    {
      label: 'longest of them',
      value: `${times.reduce((most, time) => Math.max(most, time), 0).toFixed(0)} ms`,
      ratio: `median ${median(times).toFixed(1)} ms`,
    },
    { label: 'memory grew at most by', value: `${grownMB.toFixed(0)} MB` },
    {
      label: 'load beside it',
      value: rate(turns.beside),
      ratio: `${((1 - turns.beside / turns.alone) * 100).toFixed(0)} % less than alone, ${rate(turns.alone)}, in ${rounds} turns`,
    },
  ];
  const size = ROWS.toLocaleString('en');
  printTable(`${way.title} of ${size} workflows with a step each on ${engine.database.dialect.name}`, lines);
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

/** A clock whose timers do not fire while it is closed: whoever rests, rests on. */
class Gate implements Clock {
  readonly #held: (() => void)[] = [];
  #isClosed = false;
  #isHurried = false;

  constructor(readonly clock: Clock) {}

  now(): number {
    return this.clock.now();
  }

  monotonic(): number {
    return this.clock.monotonic();
  }

  after(delayMs: number, run: () => void): Timer {
    return this.clock.after(this.#isHurried ? 0 : delayMs, () => (this.#isClosed ? void this.#held.push(run) : run()));
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Nobody is there any more for whom to rest. */
  hurry(): void {
    this.#isHurried = true;
  }

  open(): void {
    this.#isClosed = false;
    for (const run of this.#held.splice(0)) run();
  }
}

/** Keeps so many workflows under way until it is stopped. */
function startLoad(body: () => Promise<unknown>) {
  let count = 0;
  let isStopped = false;
  const callers = Array.from({ length: IN_FLIGHT }, async () => {
    while (!isStopped) {
      await body();
      count += 1;
    }
  });
  return {
    async countFor(durationMs: number): Promise<number> {
      const countThen = count;
      await pause(durationMs);
      return count - countThen;
    },
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all(callers);
    },
  };
}

/** How much more memory the process takes than now, at most. */
function watchMemory() {
  const atStart = process.memoryUsage().rss;
  let most = atStart;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 200);
  return {
    stop(): number {
      clearInterval(timer);
      return (most - atStart) / 1_048_576;
    },
  };
}
