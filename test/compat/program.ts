// What the programs under `programs/` share: they launch, run their checks one after another, and print what each found.
import { DBOS } from '@dbos-inc/dbos-sdk';
import pg from 'pg';
import Database from 'better-sqlite3';

export interface Settings {
  readonly url: string;
  readonly target: string;
}

export const settings = JSON.parse(process.argv[2] ?? '{}') as Settings;

export type Checks = Record<string, () => Promise<unknown>>;

/** How a promise, or a call that should have returned one, failed. */
export async function failureOf(body: () => unknown): Promise<unknown> {
  let promise: unknown;
  try {
    promise = body();
  } catch (error) {
    return { thrown: describe(error) };
  }
  try {
    return { returned: await promise };
  } catch (error) {
    return describe(error);
  }
}

export function describe(error: unknown): unknown {
  const { dbosErrorCode: code } = error as { dbosErrorCode?: number };
  // Without the text: ours say more.
  return { class: (error as object).constructor.name, code };
}

/** Changes or reads the tables as another program would. The tables are named without their schema. */
export async function sql(statement: string): Promise<Record<string, unknown>[]> {
  if (settings.url.startsWith('sqlite')) {
    const database = new Database(settings.url.replace('sqlite:///', ''));
    const prepared = database.prepare(statement);
    const rows = prepared.reader ? prepared.all() : (prepared.run(), []);
    database.close();
    return rows as Record<string, unknown>[];
  }
  const client = new pg.Client({ connectionString: settings.url, options: '-c search_path=dbos' });
  await client.connect();
  const { rows } = await client.query<Record<string, unknown>>(statement);
  await client.end();
  return rows;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until the condition holds, or 10 s. */
export async function until(condition: () => unknown): Promise<void> {
  for (let waited = 0; waited < 10_000 && !(await condition()); waited += 20) await sleep(20);
}

export async function within(checks: Checks): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const [name, check] of Object.entries(checks)) {
    try {
      found[name] = await check();
    } catch (error) {
      found[name] = { failed: describe(error) };
    }
  }
  return found;
}

export function configure(more: object = {}): void {
  DBOS.setConfig({
    name: 'compat',
    applicationVersion: 'v1',
    systemDatabaseUrl: settings.url,
    logLevel: 'error',
    ...more,
  });
}

export function print(found: Record<string, unknown>): void {
  process.stdout.write(`\n@@${JSON.stringify(found)}\n`, () => process.exit(0));
}

/** A whole program: configures, launches, runs the checks and prints. */
export async function runProgram(checks: Checks, config: object = {}): Promise<void> {
  configure(config);
  await DBOS.launch();
  const found = await within(checks);
  await DBOS.shutdown();
  print(found);
}
