// Callers outside of workflows while the system database cannot be used: they get an error in time, and workflows wait.
import { expect, onTestFinished, test, vi } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { DatabaseAccessError } from '../../src/kernel/errors/database-errors.js';
import { newID } from '../../src/kernel/base/ids.js';
import type { Database } from '../../src/database/database.js';
import { forEachDialect, onlyOn, type TestDialect } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { startGate } from '../rig/gate.js';
import { raw } from '../database/migrations/catalog.js';
import { failureOf } from './succession.js';

const LIMIT_MS = 300;
/** It was not stored; it may have been stored. */
const CODES = ['DATABASE_UNAVAILABLE', 'COMMIT_UNKNOWN'];

/** A database that can be taken away. */
async function setup(dialect: TestDialect) {
  const url = await dialect.createURL();
  const gate = dialect.name === 'postgres' ? await startGate(url) : undefined;
  const systemDatabaseUrl = gate ? url.replace(new URL(url).host, gate.host) : url;
  const other = await dialect.open(url);
  const config = { systemDatabaseUrl, callTimeoutMs: LIMIT_MS };
  const { DBOS } = await createEngine(dialect, config);
  const workflow = DBOS.registerWorkflow(async (n: number) => DBOS.runStep(async () => n), { name: 'workflow' });
  const gates: (() => void)[] = [];
  const parent = DBOS.registerWorkflow(
    async () => {
      await new Promise<void>((resolve) => gates.push(resolve));
      const child = await DBOS.startWorkflow(workflow)(7);
      return child.getResult();
    },
    { name: 'parent' },
  );
  await DBOS.launch();
  await DBOS.registerQueue('q', { concurrency: 5 });
  const client = await DBOSClient.create({ ...config, logger: silentLogger });
  onTestFinished(() => client.destroy());
  /** Takes the database away while the body runs. */
  const without = async <T>(body: () => Promise<T>): Promise<T> => {
    if (!gate) return lockedOut(other, body);
    gate.treat('away');
    gate.cutAll();
    try {
      return await body();
    } finally {
      gate.treat('let in');
    }
  };
  /** Commits of starts take longer than the limit while the body runs. */
  const slowly = async <T>(body: () => Promise<T>): Promise<T> => {
    if (!gate) return lockedOut(other, body);
    const script = (text: string): Promise<void> => other.exclusive((connection) => connection.script(text));
    await script(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_sleep(${(3 * LIMIT_MS) / 1000}); RETURN NULL; END $$;
      CREATE TRIGGER slow AFTER INSERT ON dbos.workflow_status FOR EACH STATEMENT EXECUTE FUNCTION slow()`);
    try {
      return await body();
    } finally {
      await script('DROP TRIGGER slow ON dbos.workflow_status');
    }
  };
  return { DBOS, workflow, parent, gates, client, without, slowly };
}

/** Holds the lock of a SQLite file. */
function lockedOut<T>(other: Database, body: () => Promise<T>): Promise<T> {
  return other.transaction(async (tx) => {
    await tx.run(raw(`UPDATE executors SET host = host`));
    return body();
  });
}

const codeOf = (failure: unknown): unknown => (failure as { readonly code?: unknown }).code;
const ids = (workflows: readonly { readonly workflowID: string }[]): string[] => workflows.map((one) => one.workflowID);

forEachDialect((dialect) => {
  test('a start from outside fails in time, with the reason, and workflows that run wait', async () => {
    const { DBOS, workflow, parent, gates, client, without } = await setup(dialect);
    const running = await DBOS.startWorkflow(parent, { workflowID: 'parent' })();
    await vi.waitUntil(() => gates.length > 0);

    const failures = await without(async () => {
      gates[0]?.();
      return Promise.all([
        failureOf((async () => DBOS.startWorkflow(workflow)(1))()),
        failureOf((async () => DBOS.startWorkflow(workflow, { workflowID: 'named' })(1))()),
        failureOf((async () => DBOS.startWorkflow(workflow, { queueName: 'q' })(1))()),
        failureOf((async () => workflow(1))()),
        failureOf(client.enqueue({ queueName: 'q', workflowName: 'workflow' }, 1)),
        failureOf(client.send('parent', 'message')),
        failureOf(DBOS.send('parent', 'message')),
      ]);
    });

    for (const failure of failures) {
      expect(CODES).toContain(codeOf(failure));
      expect((failure as Error).message).toMatch(/has not stored it within 0\.3 seconds|Cannot reach/);
    }
    expect(await running.getResult()).toBe(7);
    expect(await workflow(2)).toBe(2);
    const unwritten = failures.filter((failure) => codeOf(failure) === 'DATABASE_UNAVAILABLE');
    const stored = ids(await DBOS.listWorkflows({}));
    for (const failure of unwritten) for (const id of stored) expect(String(failure)).not.toContain(`Workflow "${id}"`);
  });

  test('a start that is written after its caller has given up runs, and its error says that it may', async () => {
    const { DBOS, workflow, slowly } = await setup(dialect);

    const failures = await slowly(() =>
      Promise.all([
        failureOf((async () => DBOS.startWorkflow(workflow)(1))()),
        failureOf((async () => DBOS.startWorkflow(workflow, { workflowID: 'named' })(2))()),
      ]),
    );

    expect(failures.map(codeOf)).toEqual(['COMMIT_UNKNOWN', 'COMMIT_UNKNOWN']);
    expect(String(failures[1])).toContain('Workflow "named" may be stored nevertheless.');
    await vi.waitUntil(async () => (await DBOS.listWorkflows({ status: 'SUCCESS' })).length === 2);
    expect(await (await DBOS.startWorkflow(workflow, { workflowID: 'named' })(2)).getResult()).toBe(2);
  });
});

onlyOn('postgres', (dialect) => {
  test('other calls from outside fail in time, too', async () => {
    const { DBOS, workflow, client, without } = await setup(dialect);

    const failures = await without(() =>
      Promise.all([
        failureOf(DBOS.startWorkflows(workflow, [{ args: [1] }], { queueName: 'q' })),
        failureOf(DBOS.sendBulk([{ destinationID: 'x', message: 1 }])),
        failureOf(DBOS.cancelWorkflow('x')),
        failureOf(DBOS.listWorkflows({})),
        failureOf(DBOS.getWorkflowStatus('x')),
        failureOf(DBOS.retrieveWorkflow('x').getStatus()),
        failureOf(DBOS.registerQueue('other')),
        failureOf(client.cancelWorkflow('x')),
        failureOf(client.listWorkflows({})),
      ]),
    );

    for (const failure of failures) expect(CODES).toContain(codeOf(failure));
    expect(await DBOS.listWorkflows({})).toEqual([]);
  });

  /** The URL for a role that may do what an application does, but for what is revoked. */
  async function roleWithout(url: string, ...revoked: string[]): Promise<string> {
    const owner = await dialect.open(url);
    const role = `role_${newID().replaceAll('-', '')}`;
    const script = (text: string): Promise<void> => owner.exclusive((connection) => connection.script(text));
    await script(`CREATE ROLE ${role} LOGIN; GRANT USAGE ON SCHEMA dbos TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA dbos TO ${role}`);
    for (const one of revoked) await script(one.replaceAll('ROLE', role));
    onTestFinished(async () => {
      const last = await dialect.open(url);
      await last.exclusive((connection) => connection.script(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
      await last.close();
    });
    const roleURL = new URL(url);
    roleURL.username = role;
    return roleURL.href;
  }

  test.each([
    ['a missing right', ['REVOKE INSERT ON dbos.workflow_status FROM ROLE']],
    [
      'a policy for rows',
      [
        'ALTER TABLE dbos.workflow_status ENABLE ROW LEVEL SECURITY',
        'CREATE POLICY reading ON dbos.workflow_status FOR SELECT USING (TRUE)',
      ],
    ],
  ])('a start that the role may not make fails at once: %s', async (_, revoked) => {
    const systemDatabaseUrl = await roleWithout(await dialect.createURL(), ...revoked);
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl, runMigrations: false });
    let steps = 0;
    const workflow = DBOS.registerWorkflow(async () => DBOS.runStep(async () => (steps += 1)), { name: 'workflow' });
    await DBOS.launch();

    const failures = await Promise.all([
      failureOf((async () => DBOS.startWorkflow(workflow)())()),
      failureOf((async () => DBOS.startWorkflow(workflow, { workflowID: 'named' })())()),
      failureOf((async () => DBOS.startWorkflow(workflow, { queueName: 'q' })())()),
      failureOf(DBOS.startWorkflows(workflow, [{ args: [] }], { queueName: 'q' })),
    ]);

    for (const failure of failures) expect(failure).toBeInstanceOf(DatabaseAccessError);
    expect(steps).toBe(0);
    await DBOS.shutdown();
  });

  test('a policy that refuses one start does not fail the others of its commit', async () => {
    const systemDatabaseUrl = await roleWithout(
      await dialect.createURL(),
      'ALTER TABLE dbos.workflow_status ENABLE ROW LEVEL SECURITY',
      `CREATE POLICY own ON dbos.workflow_status USING (TRUE) WITH CHECK (workflow_uuid <> 'theirs')`,
    );
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl, runMigrations: false });
    const workflow = DBOS.registerWorkflow(async () => 1, { name: 'workflow' });
    await DBOS.launch();

    const started = await Promise.allSettled(
      ['a', 'theirs', 'b'].map((workflowID) => DBOS.startWorkflow(workflow, { workflowID })()),
    );

    expect(started.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  test('other calls without the right fail at once', async () => {
    const systemDatabaseUrl = await roleWithout(
      await dialect.createURL(),
      'REVOKE UPDATE ON dbos.workflow_status FROM ROLE',
    );
    const client = await DBOSClient.create({ systemDatabaseUrl, logger: silentLogger });
    onTestFinished(() => client.destroy());
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl, runMigrations: false });
    await DBOS.launch();

    await expect(DBOS.cancelWorkflow('x')).rejects.toThrow(DatabaseAccessError);
    await expect(client.cancelWorkflow('x')).rejects.toThrow(DatabaseAccessError);
  });
});
