// The published declarations under the strictest settings of a project that has no other type packages than Node's.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { find, Project } from './project.js';

const PROGRAM = `
import { DBOS, DBOSClient, type DBOSConfig } from 'everstep';
import { createAdmin } from 'everstep/admin';
import { DBOSClient as LightClient } from 'everstep/client';
import * as datasource from 'everstep/datasource';
import { launchInNext, withEverstep } from 'everstep/next';
import * as outbox from 'everstep/outbox';
import * as receiver from 'everstep/receiver';

const config: DBOSConfig = { name: 'app', systemDatabaseUrl: process.env['URL'], adminToken: process.env['TOKEN'] };
DBOS.setConfig(config);
const workflow = DBOS.registerWorkflow(async (x: number) => x, { name: process.env['NAME'] });
export const start = DBOS.startWorkflow(workflow, { workflowID: process.env['ID'], timeoutMS: '30s' });
export const all = [DBOSClient, createAdmin, LightClient, datasource, launchInNext, withEverstep, outbox, receiver];
`;

let project: Project;

beforeAll(async () => {
  project = await Project.create('everstep');
  project.addModules('@types/node', 'undici-types');
  project.write({
    'package.json': { type: 'module', private: true },
    'main.ts': PROGRAM,
    'tsconfig.json': {
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        noPropertyAccessFromIndexSignature: true,
        skipLibCheck: false,
        preserveSymlinks: true,
        module: 'NodeNext',
        target: 'ES2022',
        lib: ['ES2023'],
        types: ['node'],
        noEmit: true,
      },
      files: ['main.ts'],
    },
  });
}, 300_000);

afterAll(() => project.remove());

test('the declarations need no @types/pg and allow exact optional properties', async () => {
  expect(await project.run('node', [join(find('typescript'), 'bin/tsc'), '-p', '.'])).toBe('');
});
