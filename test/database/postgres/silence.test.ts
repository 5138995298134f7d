// Connections that go silent: nothing arrives any more, and neither end is told.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { CommitUnknownError } from '../../../src/kernel/errors/database-errors.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { SilenceWatch } from '../../../src/database/postgres/silence.js';
import { findWorkflows, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { Store } from '../../../src/run/writer/store.js';
import { onlyOn } from '../../rig/dialects.js';
import { startProxy } from '../../rig/proxy.js';
import { newWorkflow } from '../../rig/records.js';

const SILENCE_MS = 400;

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

onlyOn('postgres', (dialect) => {
  test('a commit on a connection that went silent is of unknown outcome, and the next has another connection', async () => {
    const proxy = await startProxy(await dialect.createURL());
    const database = await dialect.open(proxy.url, { poolSize: 3, silenceMs: SILENCE_MS });
    await Promise.all([1, 2, 3].map(() => database.read(sql`SELECT 1`)));
    proxy.swallow();

    expect(await failure(database.commit([insertWorkflows([newWorkflow()])]))).toBeInstanceOf(CommitUnknownError);

    // It would fail on one of the other silent connections.
    await database.commit([insertWorkflows([newWorkflow()])]);
  });

  test('a pool of the caller is guarded as well', async () => {
    const proxy = await startProxy(await dialect.createURL());
    const pool = new pg.Pool({ connectionString: proxy.url });
    onTestFinished(() => pool.end());
    const database = await dialect.open(proxy.url, { pool, silenceMs: SILENCE_MS });
    await database.read(sql`SELECT 1`);
    proxy.swallow();

    await expect(database.read(sql`SELECT 1`)).rejects.toThrow(/Cannot reach Postgres/);
    expect(await database.read(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
  });

  test('a statement that the server is at work on may take as long as it wants', async () => {
    const database = await dialect.create({ silenceMs: SILENCE_MS });

    expect(await database.read(sql`SELECT 1 AS one FROM pg_sleep(2)`)).toEqual([{ one: 1 }]);
  });

  test('the writer goes on, and closing does not wait for silent connections', async () => {
    const url = await dialect.createURL();
    const proxy = await startProxy(url);
    const store = await Store.open({ url: proxy.url, logger: silentLogger, silenceMs: SILENCE_MS });
    await store.writer.start(newWorkflow());
    proxy.swallow();

    const workflow = newWorkflow();
    await store.writer.start(workflow);

    expect(await findWorkflows(await dialect.open(url), [workflow.workflowID])).toHaveLength(1);
    proxy.swallow();
    await store.close();
  });
});

/** Watches a statement while the server is at work on it, or not, at one look after the other. */
async function watch(looks: boolean[]): Promise<'cut' | 'answered'> {
  const answer = deferred<'cut' | 'answered'>();
  const stream = { bytesRead: 0, writableLength: 0, destroy: () => answer.resolve('cut') };
  const ask = async (): Promise<object[]> => {
    if (looks.length === 0) answer.resolve('answered');
    return looks.shift() === false ? [] : [{}];
  };
  const silence = new SilenceWatch({ ask, logger: silentLogger, silenceMs: 4 });
  return silence.guard({ stream, backend: 1 }, answer.promise);
}

test('a connection is cut when the server is not at work twice in a row', async () => {
  // The statement may be on its way, or its answer may have come and not been read yet.
  expect(await watch([false, true, false, true, true])).toBe('answered');
  expect(await watch([true, false, false, true])).toBe('cut');
});

test('a connection is cut when the server cannot be asked, such as when a certificate file is missing', async () => {
  const answer = deferred<'cut'>();
  const stream = { bytesRead: 0, writableLength: 0, destroy: () => answer.resolve('cut') };
  const ask = async (): Promise<never> => {
    throw new Error("ENOENT: no such file or directory, open 'root.crt'");
  };
  const silence = new SilenceWatch({ ask, logger: silentLogger, silenceMs: 4 });

  expect(await silence.guard({ stream, backend: 1 }, answer.promise)).toBe('cut');
});
