// What can be wrong with a query, and what can be wrong with the values that it finds.
import { describe, expect, test } from 'vitest';
import { Codec } from '../../../src/kernel/codec/codec.js';
import { countWorkflows, listWorkflows } from '../../../src/features/listing/listing.js';
import { listWorkflowSteps } from '../../../src/features/listing/steps.js';
import type { GetWorkflowsInput } from '../../../src/features/listing/workflow-query.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow, step } from '../../rig/records.js';
import { insert, workflow } from './rows.js';

const TEXT_FILTERS = [
  'workflowName',
  'authenticatedUser',
  'applicationVersion',
  'executorId',
  'workflow_id_prefix',
  'queueName',
  'forkedFrom',
  'parentWorkflowID',
  'scheduleName',
  'applicationName',
] as const;
const TIMES = ['startTime', 'endTime', 'completedAfter', 'completedBefore', 'dequeuedAfter', 'dequeuedBefore'] as const;
const FLAGS = ['queuesOnly', 'wasForkedFrom', 'isFork', 'hasParent', 'sortDesc', 'loadInput', 'loadOutput'] as const;
const ATTACKS = [
  `'; DROP TABLE workflow_status; --`,
  `" OR "1"="1`,
  `' OR 1=1 --`,
  `\\'; SELECT pg_sleep(10); --`,
  `%' OR name LIKE '%`,
  '$1',
  '?',
  '{a,b}',
  `["w"]`,
  'NULL',
  '\u202e',
];

const BAD: GetWorkflowsInput[] = [
  ...TEXT_FILTERS.flatMap((name) =>
    [1, {}, true, [1], ['a', null], 'nul \0', '\ud800', [['a']]].map((value) => ({ [name]: value })),
  ),
  ...TIMES.flatMap((name) =>
    [
      'yesterday',
      '',
      'x',
      1,
      '2026-13-01T00:00:00Z',
      '2026-02-30',
      '2026-01-01T00:00:00',
      `2026-01-01'; --`,
      {},
      [],
      NaN,
    ].map((value) => ({ [name]: value })),
  ),
  ...FLAGS.flatMap((name) => ['true', 1, 0, {}, []].map((value) => ({ [name]: value }))),
  ...['limit', 'offset'].flatMap((name) =>
    [-1, 1.5, NaN, Infinity, '1', '1; DROP TABLE x', {}, 2 ** 60].map((value) => ({ [name]: value })),
  ),
  ...['DONE', 'success', '', 'toString', '__proto__', ['SUCCESS', 'x']].map((status) => ({ status: status as never })),
  ...[[1], 'text', 1, { toJSON: () => 'text' }, { a: '\0' }, { '\0': 1 }].map((attributes) => ({
    attributes: attributes as never,
  })),
  { attributes: Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`k${n}`, n])) },
  { workflowIDs: [1] as never },
  null as never,
  [] as never,
  'text' as never,
];

describe('queries', () => {
  forEachDialect((dialect) => {
    test('that cannot be meant are refused at once, with the name of the field', async () => {
      const operator = operatorOn(await dialect.create(), {
        retrying: () => expect.unreachable('nothing may be asked'),
      });

      const accepted: unknown[] = [];
      for (const input of BAD) {
        try {
          await listWorkflows(operator, input);
          accepted.push(input);
        } catch (error) {
          expect([input, error]).toMatchObject([input, { name: 'DBOSInvalidArgumentError', code: 'INVALID_ARGUMENT' }]);
          const [field] = Object.keys(input ?? {}).slice(-1);
          if (field !== undefined && !Array.isArray(input) && typeof input === 'object') {
            expect((error as Error).message).toContain(field);
          }
        }
      }

      expect(accepted).toEqual([]);
    });

    test('take every text for what it is', async () => {
      const database = await dialect.create();
      await insert(database, [workflow('w'), ...ATTACKS.map((attack, n) => workflow(attack, { createdAt: 2000 + n }))]);
      const operator = operatorOn(database);
      const ids = async (input: GetWorkflowsInput): Promise<string[]> =>
        (await listWorkflows(operator, input)).map(({ workflowID }) => workflowID);

      for (const attack of ATTACKS) {
        for (const name of TEXT_FILTERS.filter((one) => one !== 'workflow_id_prefix' && one !== 'applicationName')) {
          expect([name, await ids({ [name]: attack }), await ids({ [name]: [attack, 'x'], limit: 9 })]).toEqual([
            name,
            [],
            [],
          ]);
        }
        expect(await ids({ workflow_id_prefix: attack })).toEqual([attack]);
        expect(await ids({ workflowIDs: [attack] })).toEqual([attack]);
        expect(await ids({ applicationName: attack })).toEqual([]);
        expect(await ids({ attributes: { [attack]: attack } })).toEqual([]);
      }
      expect(await countWorkflows(operator)).toBe(ATTACKS.length + 1);
    });

    test('leave out what is not to be loaded, and find what another library has stored apart', async () => {
      const database = await dialect.create();
      await insert(database, [
        workflow('w', { error: 'broken' }),
        workflow('apart', { createdAt: 2000, inputs: null, output: null }),
      ]);
      const stored = (json: string): string => `{"json":${json},"__dbos_serializer":"superjson"}`;
      await database.run(sql`
        INSERT INTO ${table('workflow_input')} (workflow_uuid, inputs) VALUES ('apart', ${stored('["in"]')})`);
      await database.run(sql`
        INSERT INTO ${table('workflow_output')} (workflow_uuid, output) VALUES ('apart', ${stored('"out"')})`);
      const operator = operatorOn(database);
      const values = async (input: GetWorkflowsInput) =>
        (await listWorkflows(operator, input)).map((one) => [one.input, one.output, (one.error as Error)?.message]);

      expect(await values({})).toEqual([
        [[1], 2, 'broken'],
        [['in'], 'out', undefined],
      ]);
      expect(await values({ loadInput: false })).toEqual([
        [undefined, 2, 'broken'],
        [undefined, 'out', undefined],
      ]);
      expect(await values({ loadOutput: false })).toEqual([
        [[1], undefined, undefined],
        [['in'], undefined, undefined],
      ]);
    });

    test('show values in any format, and those that cannot be read as they are', async () => {
      const database = await dialect.create();
      await insert(database, [
        workflow('portable', {
          createdAt: 1,
          serialization: 'portable_json',
          inputs: '{"positionalArgs":[1,"a"],"namedArgs":{"b":2}}',
          output: '{"c":3}',
        }),
        workflow('custom', { createdAt: 2, serialization: 'reversed', inputs: ']1[', output: '"txet"' }),
        workflow('unknown', { createdAt: 3, serialization: 'nobody', inputs: 'in', output: 'out', error: 'wrong' }),
        workflow('broken', { createdAt: 4, inputs: '{"json":', output: '{"json":', authenticatedRoles: 'no JSON' }),
      ]);
      const reverse = (text: string): string => [...text].reverse().join('');
      const codec = new Codec({
        name: () => 'reversed',
        stringify: (value) => reverse(JSON.stringify(value)),
        parse: (text) => (text ? (JSON.parse(reverse(text)) as unknown) : null),
      });

      const found = await listWorkflows(operatorOn(database, { codec }));

      expect(found.map((one) => [one.input, one.output, one.error])).toEqual([
        [[1, 'a', { b: 2 }], { c: 3 }, undefined],
        [[1], 'text', undefined],
        ['in', 'out', new Error('wrong')],
        ['{"json":', '{"json":', undefined],
      ]);
      expect(found[3]?.authenticatedRoles).toBe('no JSON');
    });

    test('for steps are paged in the database', async () => {
      const database = await dialect.create();
      await database.run(
        insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'me' }), newWorkflow({ workflowID: 'v' })]),
      );
      const steps = [3, 0, 2, 1, 10].map((n) => ({ owner: 'me', step: step('w', n) }));
      await database.run(insertCheckpoints(steps));
      const operator = operatorOn(database);
      const numbers = async (id: string, query = {}) =>
        (await listWorkflowSteps(operator, id, query))?.map(({ functionID }) => functionID);

      expect(await numbers('w')).toEqual([0, 1, 2, 3, 10]);
      expect(await numbers('w', { limit: 2 })).toEqual([0, 1]);
      expect(await numbers('w', { limit: 2, offset: 3 })).toEqual([3, 10]);
      expect(await numbers('w', { offset: 9 })).toEqual([]);
      expect(await numbers('v')).toEqual([]);
      expect(await numbers('none')).toBeUndefined();
      await expect(numbers('w', { limit: -1 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(numbers('w', { page: 1 })).rejects.toThrow(/unknown field "page"/);
    });
  });

  onlyOn('postgres', (dialect) => {
    test('that take too long are stopped, and the session has its own settings again', async () => {
      const database = await dialect.create({ poolSize: 1 });
      const operator = operatorOn(database, { queryTimeoutMs: 40 });
      await insert(database, [workflow('w')]);
      await database.run(sql`
        CREATE FUNCTION slow(text) RETURNS text AS $$ SELECT pg_sleep(60)::text $$ LANGUAGE sql VOLATILE`);
      await database.run(sql`ALTER TABLE ${table('workflow_status')} RENAME TO rows`);
      await database.run(sql`
        CREATE VIEW ${table('workflow_status')} AS
        SELECT r.*, slow(r.name) AS slow FROM ${table('rows')} AS r WHERE slow(r.name) IS NOT NULL`);

      await expect(listWorkflows(operator)).rejects.toMatchObject({ name: 'DBOSQueryTimeoutError', timeoutMS: 40 });
      await expect(countWorkflows(operator)).rejects.toMatchObject({ code: 'QUERY_TIMEOUT' });

      const [settings] = await database.run(sql`
        SELECT current_setting('statement_timeout') AS timeout, current_setting('enable_seqscan') AS scans`);
      expect(settings).toEqual({ timeout: '0', scans: 'off' });
    });
  });
});
