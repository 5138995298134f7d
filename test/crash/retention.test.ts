// Retention that is killed at every boundary: each workflow is in the database, or in the archive with its index.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { fileArchive } from '../../src/features/retention/file-archive.js';
import { createDBOS } from '../../src/faces/library/dbos.js';
import { bundled } from '../rig/bundle.js';
import { forEachDialect } from '../rig/dialects.js';
import { RETENTION_POINTS, type RetentionKill } from './retention-process.js';

async function runUntilKilled(settings: RetentionKill): Promise<void> {
  const program = await bundled(new URL('./retention-process.ts', import.meta.url));
  const child = spawn(process.execPath, [...program, JSON.stringify(settings)], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const log: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => log.push(chunk));
  const [, signal] = (await once(child, 'exit')) as [unknown, string | null];
  expect(signal, log.join('')).toBe('SIGKILL');
}

async function endedWorkflows(url: string, count: number): Promise<string[]> {
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'shop', applicationVersion: 'v1', systemDatabaseUrl: url, logger: silentLogger });
  const work = DBOS.registerWorkflow(async (n: number) => DBOS.runStep(async () => n, { name: 'step' }), {
    name: 'work',
  });
  await DBOS.launch();
  const handles = await Promise.all(Array.from({ length: count }, (_, n) => DBOS.startWorkflow(work)(n)));
  await Promise.all(handles.map((handle) => handle.getResult()));
  await DBOS.shutdown();
  return handles.map(({ workflowID }) => workflowID);
}

forEachDialect((dialect) => {
  describe('retention', () => {
    test.each(RETENTION_POINTS)('that is killed %s loses no workflow', async (point) => {
      const url = await dialect.createURL();
      const folder = mkdtempSync(join(inject('folder'), 'archive-'));
      const ids = await endedWorkflows(url, 3);
      const client = await DBOSClient.create({
        systemDatabaseUrl: url,
        logger: silentLogger,
        archive: fileArchive(folder),
      });
      onTestFinished(() => client.destroy());

      await runUntilKilled({ url, folder, point });
      const stored = await client.listWorkflows({});
      const archived = await Promise.all(ids.map((id) => client.getArchivedWorkflow(id)));
      const isDeleted = point === 'after the delete';

      expect(stored).toHaveLength(isDeleted ? 0 : 3);
      expect(archived.filter((one) => one !== undefined)).toHaveLength(isDeleted ? 3 : 0);

      const applied = await client.applyRetention({ completed: 0 }, { restFactor: 0 });
      const all = await Promise.all(ids.map((id) => client.getArchivedWorkflow(id)));
      await client.importWorkflows(all.filter((one) => one !== undefined));

      expect(applied.workflows).toBe(isDeleted ? 0 : 3);
      expect((await client.listWorkflows({})).map(({ workflowID }) => workflowID).toSorted()).toEqual(ids.toSorted());
      expect(await client.listWorkflowSteps(ids[0] ?? '')).toHaveLength(1);
    });
  });
});
