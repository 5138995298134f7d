// Retention as configuration: an engine applies it by itself.
import { mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { fileArchive } from '../../../src/features/retention/file-archive.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import { createDBOS } from '../../../src/faces/library/dbos.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { call } from '../../faces/cli/terminals.js';
import { until } from '../../crash/processes.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { engineOf } from '../../rig/engines.js';

async function launch(url: string, config: Partial<DBOSConfig>) {
  const DBOS = createDBOS();
  DBOS.setConfig({
    name: 'shop',
    applicationVersion: 'v1',
    systemDatabaseUrl: url,
    logger: silentLogger,
    ...config,
  });
  const work = DBOS.registerWorkflow(async (n: number) => n + 1, { name: 'work' });
  await DBOS.launch();
  onTestFinished(() => DBOS.shutdown());
  return { DBOS, work };
}

const newFolder = (): string => mkdtempSync(join(inject('folder'), 'archive-'));
const startOn = async (dialect: TestDialect, config: Partial<DBOSConfig>) => launch(await dialect.createURL(), config);

forEachDialect((dialect) => {
  describe('an engine with retention', () => {
    test('deletes and archives what is due by itself', async () => {
      const folder = newFolder();
      const { DBOS, work } = await startOn(dialect, {
        retention: { completed: 0, every: 100 },
        archive: fileArchive(folder),
      });

      const handle = await DBOS.startWorkflow(work)(1);
      await handle.getResult();
      await until('it is archived', async () => (await DBOS.getArchivedWorkflow(handle.workflowID)) !== undefined);

      expect(await DBOS.getWorkflowStatus(handle.workflowID)).toBeNull();
      expect(readdirSync(folder)).toEqual(['workflows']);
    });

    test('applies it although an engine without it was launched first', async () => {
      const url = await dialect.createURL();
      const { DBOS, work } = await launch(url, {});
      await launch(url, { retention: { completed: 0, every: 100 } });

      const { workflowID } = await DBOS.startWorkflow(work)(1);

      await until('it is deleted', async () => (await DBOS.getWorkflowStatus(workflowID)) === null);
    });

    test('brings an archived workflow back by an import', async () => {
      const url = await dialect.createURL();
      const archive = fileArchive(newFolder());
      const { DBOS, work } = await launch(url, { retention: { completed: '1 day' }, archive });
      const handle = await DBOS.startWorkflow(work)(1);
      await handle.getResult();

      expect(await DBOS.applyRetention()).toEqual({ workflows: 0, archived: 0 });
      expect(await DBOS.planRetention({ completed: 0 })).toMatchObject([{ name: 'work', workflows: 1 }]);
      expect(await DBOS.applyRetention({ completed: 0 })).toEqual({ workflows: 1, archived: 1 });
      const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger, archive });
      onTestFinished(() => client.destroy());
      const archived = await client.getArchivedWorkflow(handle.workflowID);
      await client.importWorkflows(archived ? [archived] : []);

      expect(await DBOS.getResult(handle.workflowID)).toBe(2);
    });

    test('leaves a fork alone when its original is deleted', async () => {
      const { DBOS, work } = await startOn(dialect, {});
      const handle = await DBOS.startWorkflow(work)(1);
      await handle.getResult();

      const [fork] = await Promise.all([
        // On a queue that no process serves: a fork that ends is due itself.
        DBOS.forkWorkflow(handle.workflowID, 0, { queueName: 'later' }).catch((error: unknown) => error as Error),
        DBOS.applyRetention({ completed: 0 }, { restFactor: 0 }),
      ]);

      // The delete came first, or the fork did. Nothing is in between.
      if (fork instanceof Error) expect(fork.message).toContain(handle.workflowID);
      else expect(await fork.getStatus()).toMatchObject({ status: 'ENQUEUED', input: [1] });
    });

    test('is asked for from the command line', async () => {
      const url = await dialect.createURL();
      const folder = newFolder();
      const { DBOS, work } = await launch(url, { archive: fileArchive(folder) });
      const handle = await DBOS.startWorkflow(work)(1);
      await handle.getResult();
      const everstep = (line: string) => call(`${line} -s ${url}`);

      const nothing = await everstep('retention plan --completed 30d');
      const planned = await everstep('retention plan --completed 0 --json');
      const kept = await everstep('retention plan --completed 0 --keep work');
      const refused = await everstep('retention plan');
      const run = await everstep(`retention run --completed 0 --archive ${folder} --yes --json`);
      const archived = await everstep(`workflow archived ${handle.workflowID} --archive ${folder}`);
      const missing = await everstep(`workflow archived none --archive ${folder}`);

      expect(nothing.out).toContain('Nothing would be deleted');
      expect(JSON.parse(planned.out)).toMatchObject([{ name: 'work', status: 'SUCCESS', workflows: 1 }]);
      expect(kept.out).toContain('Nothing would be deleted');
      expect(refused.exitCode).not.toBe(0);
      expect(JSON.parse(run.out)).toEqual({ workflows: 1, archived: 1 });
      expect(JSON.parse(archived.out)).toMatchObject({ workflow_status: { workflow_uuid: handle.workflowID } });
      expect(missing.exitCode).not.toBe(0);
      expect(await DBOS.getArchivedWorkflow(handle.workflowID)).toBeDefined();
    });

    test('finds workflows again that are noted under an object without them', async () => {
      const url = await dialect.createURL();
      const folder = newFolder();
      const { DBOS, work } = await launch(url, { archive: fileArchive(folder) });
      const lost = await DBOS.startWorkflow(work)(1);
      await lost.getResult();
      await DBOS.applyRetention({ completed: 0 });
      const other = await DBOS.startWorkflow(work)(2);
      await other.getResult();
      await DBOS.applyRetention({ completed: 0 });
      await engineOf(DBOS).runtime.database.run(sql`
        UPDATE ${table('archived_workflows')}
        SET object_name = (SELECT MAX(a.object_name) FROM ${table('archived_workflows')} AS a WHERE a.workflow_uuid = ${other.workflowID})`);
      await expect(DBOS.getArchivedWorkflow(lost.workflowID)).rejects.toThrow('is missing');
      const repair = async () =>
        JSON.parse((await call(`retention repair --archive ${folder} -s ${url} --json`)).out) as unknown;

      const repaired = await repair();

      expect(repaired).toEqual({ objects: 2, workflows: 1 });
      expect(await repair()).toEqual({ objects: 2, workflows: 0 });
      for (const { workflowID } of [lost, other]) expect(await DBOS.getArchivedWorkflow(workflowID)).toBeDefined();
    });

    test('shows an archived workflow over HTTP', async () => {
      const { DBOS, work } = await startOn(dialect, { archive: fileArchive(newFolder()) });
      const handle = await DBOS.startWorkflow(work)(1);
      await handle.getResult();
      await DBOS.applyRetention({ completed: 0 });
      const admin = createAdmin({ source: DBOS, isOpen: true });
      onTestFinished(() => admin.close());

      const get = (id: string) => admin.fetch(new Request(`http://localhost/api/v1/archived-workflows/${id}`));
      const found = await get(handle.workflowID);

      expect(await found.json()).toMatchObject({ workflow_status: { workflow_uuid: handle.workflowID } });
      expect((await get('unknown')).status).toBe(404);
    });
  });
});

test.each([
  [{ retention: { completed: 'a month' } }, 'retention.completed'],
  [{ retention: { done: '1d' } }, 'done'],
  [{ archive: {} }, 'archive'],
])('the configuration %o is refused', (config, message) => {
  const DBOS = createDBOS();

  expect(() => DBOS.setConfig({ name: 'shop', ...config } as never)).toThrow(message);
});
