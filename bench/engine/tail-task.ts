// One workflow after the other, each beside a bare INSERT on a connection of its own: what the slowest have in common. The
// INSERT says how much of a tail is the server's, the disk's and the machine's.
import { PerformanceObserver } from 'node:perf_hooks';
import pg from 'pg';
import { answer, type TailsAnswer, type TailsCommand } from './commands.js';
import type { Extras } from './extras.js';
import type { Library } from './library.js';
import { registerWorkload } from './workload.js';

const WARM_UP_MS = 1500;
const PAYLOAD = 'x'.repeat(300);

interface Span {
  readonly from: number;
  readonly to: number;
}

interface Sample extends Span {
  readonly ms: number;
  readonly commitMs: number;
  readonly statements: number;
}

export async function tails(library: Library, command: TailsCommand, { counts }: Extras): Promise<void> {
  const { steps } = registerWorkload(library);
  await library.launch();
  const insert = await openInsert(command.url);
  const pauses = notePauses();
  const samples: Sample[] = [];
  const inserts: number[] = [];
  const sample = async (): Promise<void> => {
    const before = { ...counts };
    const from = performance.now();
    await steps(command.steps);
    const to = performance.now();
    const statements = counts.statementsBesides - before.statementsBesides;
    samples.push({ from, to, ms: to - from, commitMs: counts.commitMs - before.commitMs, statements });
    inserts.push(await insert.run());
  };
  for (const endsAt = performance.now() + WARM_UP_MS; performance.now() < endsAt;) await sample();
  samples.length = 0;
  inserts.length = 0;
  for (const endsAt = performance.now() + command.durationMs; performance.now() < endsAt;) await sample();
  // The observer gets what it observes a turn later.
  await new Promise((resolve) => setImmediate(resolve));
  const ofSamples = samples.map(({ ms }) => ms);
  const slow = samples.filter(({ ms }) => ms >= percentile(ofSamples, 0.99));
  const shareOf = (of: (one: Sample) => number): number => sum(slow.map(of)) / sum(slow.map(({ ms }) => ms));
  answer({
    samples: samples.length,
    workflow: TAIL.map((part) => percentile(ofSamples, part)),
    insert: TAIL.map((part) => percentile(inserts, part)),
    inCommits: shareOf(({ commitMs }) => commitMs),
    inCollections: shareOf((one) => sum(pauses.map((pause) => overlapOf(pause, one)))),
    besideStatements: slow.filter(({ statements }) => statements > 0).length / slow.length,
  } satisfies TailsAnswer);
  await insert.close();
  await library.shutdown();
}

export const TAIL = [0.5, 0.9, 0.99, 0.999] as const;

/** A row in a table of its own, in a commit of its own. */
async function openInsert(url: string) {
  const client = new pg.Client(url);
  await client.connect();
  await client.query('CREATE TABLE bare_inserts (id BIGSERIAL PRIMARY KEY, payload TEXT)');
  const statement = { name: 'insert', text: 'INSERT INTO bare_inserts (payload) VALUES ($1)', values: [PAYLOAD] };
  return {
    async run(): Promise<number> {
      const startedAt = performance.now();
      await client.query(statement);
      return performance.now() - startedAt;
    },
    close: () => client.end(),
  };
}

function notePauses(): Span[] {
  const pauses: Span[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      pauses.push({ from: startTime, to: startTime + duration });
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return pauses;
}

function overlapOf(a: Span, b: Span): number {
  return Math.max(0, Math.min(a.to, b.to) - Math.max(a.from, b.from));
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
