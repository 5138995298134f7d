// The fault campaign: three processes under load, a client that cancels and resumes, and random faults of every kind.
// In the end nothing is lost, nothing was done twice, and nothing has gone back. CAMPAIGN_SECONDS makes it longer,
// CRASH_SEED another one.
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { Codec } from '../../src/kernel/codec/codec.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';
import { dropDatabase, queryOn } from '../plugins/transaction/scene.js';
import type { TestDialect } from '../rig/dialects.js';
import { startProxy } from '../rig/proxy.js';
import { FAULTS, type Ground, OBSERVER, pause, pick, type Station } from './faults.js';
import { countByStatus, expectAllEnded, stepKey } from './invariants.js';
import { type Line, linesOf } from './journal.js';
import { type Booking, expectBooked, LEDGER } from './ledger.js';
import { expectMail } from './mail.js';
import { launchWorker, until, type Worker } from './processes.js';
import { type RandomSource, randomSource } from './random.js';
import { type Scene, setScene } from './setup.js';

const SECONDS = Number(process.env['CAMPAIGN_SECONDS'] ?? 45);
const SEED = 20_261_116;
const PROCESSES = 3;
/** For workflows that never end. */
const SETTLE_MS = 300_000;
const LAUNCHES_MAX = 20;
const MIX = ['five', 'family', 'ledger', 'counter', 'mail', 'sleeper', 'everything', 'forker'] as const;
/** So that a slow machine has no more to do after the faults than a fast one. */
const BACKLOG_MAX = 300;
/** A cancel does not reach children, so only workflows without any are cancelled. */
const CANCELLED = new Set(['five', 'counter']);

/** Defines the campaign on a dialect. */
export function faultCampaign(dialect: TestDialect): void {
  test(
    'faults of every kind lose nothing, repeat nothing and undo nothing',
    { timeout: SECONDS * 1000 + SETTLE_MS + 60_000 },
    async () => {
      const random = randomSource(SEED);
      const scene = await setScene(dialect);
      const ledgerURL = await dialect.createURL({ isMigrated: false });
      await queryOn(ledgerURL)(LEDGER);
      const campaign = new Campaign(scene, { dialect, ledgerURL, random });

      await campaign.start();
      const struck = await campaign.strikeUntil(Date.now() + SECONDS * 1000);
      await campaign.settle();

      const lines = scene.journal.read();
      const tables = await scene.tables();
      report(dialect, struck, tables.workflows.size);
      expectAllEnded(tables, lines);
      expectNotRepeated(lines, campaign.durableAt);
      expectBooked(tables, (await queryOn(ledgerURL)('SELECT * FROM bookings')) as unknown as Booking[]);
      await scene.withDatabase((database) => expectMail(database, tables));
      expect(campaign.problems).toEqual([]);
      expect(tables.workflows.size).toBeGreaterThan(100);
    },
  );

  afterAll(dropDatabase);
}

interface Terms {
  readonly dialect: TestDialect;
  readonly ledgerURL: string;
  readonly random: RandomSource;
}

class Campaign {
  /** What must never happen, in words. */
  readonly problems: string[] = [];
  /** When each checkpoint was first seen in the database. */
  readonly durableAt = new Map<string, number>();
  readonly #scene: Scene;
  readonly #terms: Terms;
  readonly #stations: Station[] = [];
  readonly #counts = new Map<string, number>();
  #ground!: Ground;
  #client!: DBOSClient;
  #observer!: Database;
  #isOver = false;
  #background: Promise<unknown>[] = [];
  #started = 0;
  #ended = 0;

  constructor(scene: Scene, terms: Terms) {
    this.#scene = scene;
    this.#terms = terms;
  }

  async start(): Promise<void> {
    const { dialect, random } = this.#terms;
    const { url } = this.#scene;
    const clientProxy = dialect.name === 'postgres' ? await startProxy(url) : undefined;
    this.#client = await DBOSClient.create({ systemDatabaseUrl: clientProxy?.url ?? url, logger: silentLogger });
    onTestFinished(() => this.#client.destroy());
    this.#observer = await dialect.open(observerURL(url), { poolSize: 1 });
    for (let number = 0; number < PROCESSES; number += 1) this.#stations.push(await this.#newStation());
    this.#ground = { url, stations: this.#stations, clientProxy, random };
    onTestFinished(() => void (this.#isOver = true));
    const note = (error: unknown): void => void this.problems.push(String(error));
    this.#background = [this.#load(), this.#steer(), this.#observe()].map((work) => work.catch(note));
  }

  async #newStation(): Promise<Station> {
    const { dialect, ledgerURL } = this.#terms;
    const proxy = dialect.name === 'postgres' ? await startProxy(this.#scene.url) : undefined;
    const ledgerProxy = dialect.name === 'postgres' ? await startProxy(ledgerURL) : undefined;
    const launch = (): Promise<Worker> =>
      launchWorker({
        url: proxy?.url ?? this.#scene.url,
        ledgerURL: ledgerProxy?.url ?? ledgerURL,
        journalPath: this.#scene.journalPath,
        leaseSeconds: 2,
        stepMs: 30,
        sleepMs: 500,
      });
    const station: Station = {
      proxy,
      ledgerProxy,
      worker: await launch(),
      restart: async () => {
        proxy?.restore();
        ledgerProxy?.restore();
        station.worker = this.#watched(await persistently(launch));
      },
    };
    this.#watched(station.worker);
    return station;
  }

  /** A worker ends only when it is killed. */
  #watched(worker: Worker): Worker {
    void worker.exited.then(({ code, signal }) => {
      if (signal !== 'SIGKILL') this.problems.push(`a worker ended with ${code}:\n${worker.log().slice(-2000)}`);
    });
    return worker;
  }

  /** Strikes one fault after the other; those that take time overlap. Returns how often each has struck. */
  async strikeUntil(end: number): Promise<Record<string, number>> {
    const { dialect, random } = this.#terms;
    const faults = Object.entries(FAULTS[dialect.name]);
    const struck: Record<string, number> = {};
    const busy = new Set<string>();
    const striking: Promise<void>[] = [];
    while (Date.now() < end) {
      await pause(100 + random.below(500));
      const [name, fault] = pick(faults, random);
      if (busy.has(name)) continue;
      busy.add(name);
      struck[name] = (struck[name] ?? 0) + 1;
      const strike = fault(this.#ground)
        .catch((error: unknown) => void this.problems.push(`fault ${name} failed: ${String(error)}`))
        .finally(() => busy.delete(name));
      striking.push(strike);
    }
    await Promise.all(striking);
    for (const { proxy, ledgerProxy } of this.#stations) {
      proxy?.restore();
      ledgerProxy?.restore();
    }
    this.#ground.clientProxy?.restore();
    return struck;
  }

  /** Waits until all that was started has ended. */
  async settle(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#background);
    // Starts that were sent to a worker may still wait for those before them.
    await Promise.all(this.#stations.map(({ worker }) => worker.perform({ do: 'finish' })));
    const isDone = async (): Promise<boolean> => {
      const counts = await countByStatus(this.#observer);
      return counts.size === 1 && counts.has('SUCCESS');
    };
    await until('all workflows have succeeded', isDone, { boundMs: SETTLE_MS }).catch(async (error: unknown) => {
      const rows = await this.#observer.read(sql`
        SELECT w.workflow_uuid, w.status, w.name, w.owner_xid, w.queue_name, w.error FROM ${table('workflow_status')} AS w
        WHERE w.status <> 'SUCCESS' LIMIT 10`);
      const logs = this.#stations.map(({ worker }) => worker.log().slice(-1500)).join('\n---\n');
      throw new Error(`${String(error)}\n${JSON.stringify(rows, null, 1)}\n${logs}`);
    });
    await this.#observeOnce();
  }

  /** Starts workflows of every kind on all processes. */
  async #load(): Promise<void> {
    const { random } = this.#terms;
    while (!this.#isOver) {
      const backlog = this.#started - this.#ended;
      for (const { worker } of backlog < BACKLOG_MAX ? this.#stations : []) {
        const name = pick(MIX, random);
        const workflowIDs = Array.from({ length: 4 }, () => `${name}-${(this.#started += 1)}`);
        worker.send({ do: 'start', name, workflowIDs });
      }
      await pause(400);
    }
  }

  /** Cancels workflows, and resumes each of them once: from then on it is never cancelled again. */
  async #steer(): Promise<void> {
    const { random } = this.#terms;
    const steered = new Set<string>();
    while (!this.#isOver) {
      await pause(300);
      const active = await this.#client.listWorkflows({ status: ['PENDING', 'ENQUEUED'], loadInput: false });
      const candidates = active.filter((one) => CANCELLED.has(one.workflowName) && !steered.has(one.workflowID));
      if (candidates.length === 0) continue;
      const { workflowID } = pick(candidates, random);
      steered.add(workflowID);
      await this.#client.cancelWorkflow(workflowID);
      await pause(random.below(400));
      await this.#client.resumeWorkflow(workflowID);
    }
  }

  async #observe(): Promise<void> {
    while (!this.#isOver) {
      await this.#observeOnce().catch(() => {});
      await pause(200);
    }
  }

  /** Notes which checkpoints are durable, and that no event goes back. */
  async #observeOnce(): Promise<void> {
    this.#ended = (await countByStatus(this.#observer)).get('SUCCESS') ?? 0;
    const steps = await this.#observer.read(sql`
      SELECT o.workflow_uuid, o.function_id FROM ${table('operation_outputs')} AS o`);
    const now = Date.now();
    for (const row of steps) {
      const key = stepKey({ workflowID: String(row['workflow_uuid']), stepID: Number(row['function_id']) });
      if (!this.durableAt.has(key)) this.durableAt.set(key, now);
    }
    const counts = await this.#observer.read(sql`
      SELECT e.workflow_uuid, e.value, e.serialization FROM ${table('workflow_events')} AS e WHERE e.key = 'count'`);
    for (const row of counts) {
      const workflowID = String(row['workflow_uuid']);
      const count = Number(await codec.decodeValue(String(row['value']), row['serialization'] as string | null));
      const before = this.#counts.get(workflowID) ?? 0;
      if (count < before) this.problems.push(`the count of "${workflowID}" went back from ${before} to ${count}`);
      this.#counts.set(workflowID, count);
    }
  }
}

/** A launch fails if it cannot reach its database. Then a supervisor starts the process again. */
async function persistently(launch: () => Promise<Worker>): Promise<Worker> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch();
    } catch (error) {
      if (attempt === LAUNCHES_MAX) throw error;
    }
  }
}

const codec = new Codec();

/** No body has begun after its checkpoint was seen in the database. */
function expectNotRepeated(lines: readonly Line[], durableAt: ReadonlyMap<string, number>): void {
  const repeated = linesOf(lines, 'step').filter((line) => line.at > (durableAt.get(stepKey(line)) ?? Infinity));
  const described = repeated.map((line) => {
    const lateMs = line.at - (durableAt.get(stepKey(line)) ?? 0);
    return `step ${stepKey(line)} "${line.name}" began in ${line.pid}, ${lateMs} ms after its checkpoint was durable`;
  });
  expect(described).toEqual([]);
}

function observerURL(url: string): string {
  if (!url.startsWith('postgres')) return url;
  const changed = new URL(url);
  changed.searchParams.set('application_name', OBSERVER);
  return changed.toString();
}

/** For those who run it by hand. */
function report(dialect: TestDialect, struck: Record<string, number>, workflows: number): void {
  if (process.env['CAMPAIGN_SECONDS'] === undefined) return;
  const faults = Object.values(struck).reduce((sum, count) => sum + count, 0);
  process.stderr.write(`${dialect.name}: ${workflows} workflows, ${faults} faults ${JSON.stringify(struck)}\n`);
}
