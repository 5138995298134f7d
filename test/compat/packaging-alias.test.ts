// Applications and plugins that were written for DBOS find the package under the name of theirs, in both formats.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { queryOn } from '../plugins/transaction/scene.js';
import { postgres, wantsDialect } from '../rig/dialects.js';
import { find, Project } from './project.js';

const PLUGINS = ['drizzle-datasource', 'kafkajs-receive', 'knex-datasource', 'postgres-datasource'];

const PROGRAM = `
import { DBOS } from '@dbos-inc/dbos-sdk';
import { KnexDataSource } from '@dbos-inc/knex-datasource';

const [url, systemDatabaseUrl, workflowID] = process.argv.slice(2) as [string, string, string];
const source = new KnexDataSource('knex', { client: 'pg', connection: url });

class Orders {
  static readonly insert = source.registerTransaction(
    async (item: string) => { await source.client('orders').insert({ item }); return DBOS.workflowID; },
    { name: 'insert' },
  );

  @DBOS.step()
  static async confirm(item: string): Promise<string> {
    return \`\${item} confirmed\`;
  }

  @DBOS.workflow()
  static async order(item: string): Promise<unknown[]> {
    return [await Orders.insert(item), await Orders.confirm(item)];
  }
}

async function main(): Promise<void> {
  DBOS.setConfig({ name: 'orders', systemDatabaseUrl, logLevel: 'error' });
  await DBOS.launch();
  const handle = await DBOS.startWorkflow(Orders, { workflowID }).order('tea');
  const result = await handle.getResult();
  const steps = await DBOS.listWorkflowSteps(workflowID);
  console.log(JSON.stringify([result, steps?.map(({ name }) => name)]));
  await DBOS.shutdown();
}
void main();
`;

let project: Project;

beforeAll(async () => {
  project = await Project.create('@dbos-inc/dbos-sdk');
  for (const name of PLUGINS) project.addPlugin(`@dbos-inc/${name}`);
}, 300_000);

afterAll(() => project.remove());

describe('under the name of the DBOS package', () => {
  test.skipIf(!wantsDialect('postgres')).each(['commonjs', 'module'])(
    'a program of type "%s" runs in tsx with a published plugin',
    async (type) => {
      const url = await postgres.createURL({ isMigrated: false });
      const systemURL = await postgres.createURL();
      await queryOn(url)('CREATE TABLE orders (item TEXT)');
      project.write({
        [`${type}/package.json`]: { type },
        [`${type}/tsconfig.json`]: { compilerOptions: { target: 'ES2022', experimentalDecorators: true } },
        [`${type}/main.ts`]: PROGRAM,
      });

      const printed = await project.run(find('.bin/tsx'), ['main.ts', url, systemURL, 'w'], type);

      expect(JSON.parse(printed)).toEqual([
        ['w', 'tea confirmed'],
        ['insert', 'confirm'],
      ]);
      expect(await queryOn(url)('SELECT item FROM orders')).toEqual([{ item: 'tea' }]);
      const records = await queryOn(url)('SELECT workflow_id, function_num FROM dbos.transaction_completion');
      expect(records).toEqual([{ workflow_id: 'w', function_num: 0 }]);
    },
  );

  test('plugins find all that they import, in both formats', async () => {
    const wanted = PLUGINS.flatMap((name) => namesIn(`@dbos-inc/${name}`));
    project.write({
      'names.mjs': `import { createRequire } from 'node:module';
        const require = createRequire(import.meta.url);
        for (const [path, name] of ${JSON.stringify(wanted)}) {
          if (require(path)[name] === undefined) console.log('required', path, name);
          if ((await import(path))[name] === undefined) console.log('imported', path, name);
        }
        for (const name of ${JSON.stringify(PLUGINS)}) require('@dbos-inc/' + name);`,
    });

    expect(await project.run('node', ['names.mjs'])).toBe('');
    expect(new Set(wanted.map(([path]) => path))).toEqual(
      new Set(['@dbos-inc/dbos-sdk', '@dbos-inc/dbos-sdk/datasource', '@dbos-inc/dbos-sdk/eventreceiver']),
    );
  });
});

/** What a plugin, as it is published, takes from the package: paths and names. */
function namesIn(plugin: string): [string, string][] {
  const code = readFileSync(join(project.folder, 'node_modules', plugin, 'dist/index.js'), 'utf8');
  return [...code.matchAll(/const (\w+) = require\("(@dbos-inc\/dbos-sdk[^"]*)"\)/g)].flatMap(
    ([, variable = '', path = '']) => {
      const uses = code.matchAll(new RegExp(`\\b${variable}\\.(\\w+)`, 'g'));
      return [...uses].map(([, name = '']): [string, string] => [path, name]);
    },
  );
}
