// Projects that use the package in each of the formats and resolutions that TypeScript 5.9 offers, and under Jest.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { find, Project } from './project.js';

/** Uses the package and some of its entries, with types that must be found. */
const PROGRAM = `
import { DBOS, Error as Errors, WorkflowQueue, type WorkflowHandle } from 'everstep';
import { createAdmin } from 'everstep/admin';
import { PGIsolationLevel } from 'everstep/datasource';
import { BetterSqlite3DataSource } from 'everstep/datasource/better-sqlite3';
import { getOrCreateQueue } from 'everstep/eventreceiver';
import { Reject } from 'everstep/outbox';
import { WorkflowRoutes } from 'everstep/receiver/http';

const queue = new WorkflowQueue('queue');
const source = new BetterSqlite3DataSource('source', 'data.sqlite');

class Greeter {
  static async greet(name: string): Promise<string> {
    const one = await source.runTransaction(async () => source.client.prepare('SELECT 1').pluck().get() as number);
    return DBOS.runStep(async () => \`hello \${name} \${one}\`, { name: 'greeting' });
  }
}
const greet = DBOS.registerWorkflow(Greeter.greet, { name: 'greet' });

export async function main(): Promise<string> {
  DBOS.setConfig({ name: 'user', systemDatabaseUrl: 'sqlite:system.sqlite', logLevel: 'error' });
  await DBOS.launch();
  try {
    const handle: WorkflowHandle<string> = await DBOS.startWorkflow(greet, { queueName: queue.name })('you');
    const result: string = await handle.getResult();
    // @ts-expect-error -- The types are there, not \`any\`.
    const wrong: number = result;
    const refused: unknown = await DBOS.resumeWorkflow('none').catch((error: unknown) => error);
    const names = [createAdmin, getOrCreateQueue, Reject, WorkflowRoutes].map((value) => typeof value);
    const isKnown = refused instanceof Errors.DBOSNonExistentWorkflowError;
    return [result, isKnown, PGIsolationLevel.Serializable, names.join(), typeof wrong].join(' ');
  } finally {
    await DBOS.shutdown();
  }
}
`;
const PRINTED = 'hello you 1 true SERIALIZABLE function,function,function,function string';

const STRICT = { target: 'ES2022', strict: true, skipLibCheck: true, types: ['node'] };

let project: Project;

beforeAll(async () => {
  project = await Project.create('everstep');
  project.addModules('@types/node', '@types/better-sqlite3', '@types/jest', 'ts-jest', 'typescript');
}, 300_000);

afterAll(() => project.remove());

describe('a project in TypeScript 5.9', () => {
  test.each([
    ['commonjs', { module: 'CommonJS', moduleResolution: 'Node10', esModuleInterop: true }],
    ['commonjs', { module: 'Node16' }],
    ['module', { module: 'NodeNext' }],
  ])('of type "%s" with %j compiles and runs', async (type, options) => {
    const folder = `${type}-${options.module}`;
    project.write({
      [`${folder}/package.json`]: { type },
      [`${folder}/tsconfig.json`]: { compilerOptions: { ...STRICT, ...options, outDir: 'out' }, include: ['*.ts'] },
      [`${folder}/main.ts`]: `${PROGRAM}\nvoid main().then(console.log);`,
    });

    await compile(folder);

    expect(await project.run('node', ['out/main.js'], folder)).toBe(`${PRINTED}\n`);
  });

  test('that a bundler resolves compiles', async () => {
    const options = { ...STRICT, module: 'ESNext', moduleResolution: 'Bundler', noEmit: true };
    project.write({
      'bundler/tsconfig.json': { compilerOptions: options, include: ['*.ts'] },
      'bundler/main.ts': PROGRAM,
    });

    await expect(compile('bundler')).resolves.toBe('');
  });
});

async function compile(folder: string): Promise<string> {
  return project.run('node', [`${find('typescript')}/bin/tsc`, '-p', '.'], folder);
}

describe('a project that is tested with ts-jest', () => {
  beforeAll(() => {
    project.write({
      'jest/package.json': { type: 'commonjs' },
      'jest/jest.config.js': `module.exports = {
        preset: 'ts-jest', testEnvironment: 'node', watchman: false, cacheDirectory: './cache' };`,
      'jest/tsconfig.json': {
        compilerOptions: { ...STRICT, module: 'CommonJS', moduleResolution: 'Node10', types: ['node', 'jest'] },
      },
      'jest/main.ts': PROGRAM,
      'jest/main.test.ts': `
        import { createDBOS, DBOS, Error as Errors } from 'everstep';
        import { main } from './main';

        test('workflows run', async () => {
          expect(await main()).toBe('${PRINTED}');
        });

        test('values and errors are of the classes that the test knows', async () => {
          const dbos = createDBOS();
          const step = dbos.registerStep(async () => new Map([['at', new Date(0)]]), { name: 'step' });
          const copy = dbos.registerWorkflow(async () => [await step(), Buffer.from('a'), new Error('e')], { name: 'copy' });
          const fail = dbos.registerWorkflow(async () => { throw new TypeError('no'); }, { name: 'fail' });
          dbos.setConfig({ name: 'jest', systemDatabaseUrl: 'sqlite:jest.sqlite', logLevel: 'error' });
          await dbos.launch();
          const handle = await dbos.startWorkflow(copy, { workflowID: 'w' })();
          const [first, replayed] = [await handle.getResult(), await dbos.retrieveWorkflow('w').getResult()];
          const status = await dbos.getWorkflowStatus('w');
          expect(first).toEqual([new Map([['at', new Date(0)]]), Buffer.from('a'), new Error('e')]);
          expect(replayed).toEqual(first);
          expect(status?.output).toEqual(first);
          expect((first as unknown[])[0]).toBeInstanceOf(Map);
          expect((first as unknown[])[2]).toBeInstanceOf(Error);
          await expect(fail()).rejects.toThrow(TypeError);
          await dbos.shutdown();
          await expect(DBOS.startWorkflow(copy)()).rejects.toBeInstanceOf(Errors.DBOSError);
        });
      `,
    });
  });

  test.each(['jest-29', 'jest'])(
    'with %s runs',
    async (runner) => {
      const printed = await project.runTests('node', [`${find(runner)}/bin/jest.js`, '--ci', '--runInBand'], 'jest');

      expect(printed).toContain('Tests:       2 passed, 2 total');
    },
    120_000,
  );
});
