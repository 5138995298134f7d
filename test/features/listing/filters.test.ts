import { describe, expect, test } from 'vitest';
import { countWorkflows, listQueuedWorkflows, listWorkflows } from '../../../src/features/listing/listing.js';
import type { GetWorkflowsInput } from '../../../src/features/listing/workflow-query.js';
import type { WorkflowRecord } from '../../../src/kernel/workflow/records.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { inOrder, insert, workflow } from './rows.js';

async function setup(dialect: TestDialect, records: readonly WorkflowRecord[]) {
  const database = await dialect.create();
  await insert(database, records);
  const operator = operatorOn(database);
  const list = async (input: GetWorkflowsInput = {}) =>
    (await listWorkflows(operator, input)).map(({ workflowID }) => workflowID);
  return { database, operator, list };
}

const at = (ms: number): string => new Date(ms).toISOString();

const ROWS = inOrder(
  workflow('a-1', { name: 'mail', status: 'SUCCESS', completedAt: 5000, startedAt: 3000, executorID: 'vm-1' }),
  workflow('a-2', { name: 'mail', status: 'ERROR', completedAt: 6000, startedAt: 4000, applicationVersion: 'v2' }),
  workflow('a_3', { name: 'bill', status: 'ENQUEUED', queueName: 'q1', authenticatedUser: 'ann' }),
  workflow('b%4', { name: 'bill', status: 'PENDING', queueName: 'q2', startedAt: 7000, scheduleName: 'daily' }),
  workflow('b-5', { name: 'scan', status: 'DELAYED', queueName: 'q1', parentWorkflowID: 'a-1' }),
  workflow('c-6', { name: 'scan', status: 'CANCELLED', forkedFrom: 'a-2', attributes: '{"a":1,"b":{"c":[1,2]}}' }),
  workflow('c-7', { status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', wasForkedFrom: true, attributes: '{"a":2}' }),
  workflow('c-8', { applicationName: null }),
  workflow('c-9', { applicationName: 'other', queueName: 'q1', status: 'PENDING' }),
);

const CASES: [string, GetWorkflowsInput, string[]][] = [
  ['nothing', {}, ['a-1', 'a-2', 'a_3', 'b%4', 'b-5', 'c-6', 'c-7', 'c-8']],
  ['workflowIDs', { workflowIDs: ['c-9', 'a-1', 'none'] }, ['a-1', 'c-9']],
  ['no workflowIDs', { workflowIDs: [] }, []],
  ['workflowIDs of an application', { workflowIDs: ['c-9', 'a-1'], applicationName: 'test' }, ['a-1']],
  ['workflowName', { workflowName: 'mail' }, ['a-1', 'a-2']],
  ['several workflowNames', { workflowName: ['mail', 'scan'] }, ['a-1', 'a-2', 'b-5', 'c-6']],
  ['status', { status: 'ERROR' }, ['a-2']],
  ['several statuses', { status: ['PENDING', 'ENQUEUED', 'PENDING'] }, ['a_3', 'b%4']],
  ['several statuses with a limit', { status: ['PENDING', 'ERROR', 'ENQUEUED'], limit: 2 }, ['a-2', 'a_3']],
  ['authenticatedUser', { authenticatedUser: 'ann' }, ['a_3']],
  ['applicationVersion', { applicationVersion: ['v2', 'v3'] }, ['a-2']],
  ['executorId', { executorId: 'vm-1' }, ['a-1']],
  ['workflow_id_prefix', { workflow_id_prefix: 'a-' }, ['a-1', 'a-2']],
  ['a prefix with an underscore', { workflow_id_prefix: 'a_' }, ['a_3']],
  ['a prefix with a percent sign', { workflow_id_prefix: 'b%' }, ['b%4']],
  ['a prefix of a percent sign', { workflow_id_prefix: '%' }, []],
  ['a prefix with a backslash', { workflow_id_prefix: 'b\\' }, []],
  ['several prefixes', { workflow_id_prefix: ['a-2', 'b'] }, ['a-2', 'b%4', 'b-5']],
  ['an empty prefix', { workflow_id_prefix: ['a-2', ''], limit: 3 }, ['a-1', 'a-2', 'a_3']],
  ['queueName', { queueName: 'q1' }, ['a_3', 'b-5']],
  ['several queueNames with a limit', { queueName: ['q2', 'q1', 'q1'], limit: 2 }, ['a_3', 'b%4']],
  ['forkedFrom', { forkedFrom: 'a-2' }, ['c-6']],
  ['parentWorkflowID', { parentWorkflowID: ['a-1', 'x'] }, ['b-5']],
  ['scheduleName', { scheduleName: 'daily' }, ['b%4']],
  ['applicationName', { applicationName: 'other' }, ['c-8', 'c-9']],
  ['several applicationNames', { applicationName: ['other', 'test'], startTime: at(1006) }, ['c-7', 'c-8', 'c-9']],
  ['startTime', { startTime: at(1006) }, ['c-7', 'c-8']],
  ['endTime', { endTime: at(1001) }, ['a-1', 'a-2']],
  ['a time with an offset', { endTime: '1970-01-01T02:00:01.001+02:00' }, ['a-1', 'a-2']],
  ['completedAfter', { completedAfter: at(6000) }, ['a-2']],
  ['completedBefore', { completedBefore: at(5999) }, ['a-1']],
  ['dequeuedAfter', { dequeuedAfter: at(4000) }, ['a-2', 'b%4']],
  ['dequeuedBefore', { dequeuedBefore: at(4000) }, ['a-1', 'a-2']],
  ['queuesOnly', { queuesOnly: true }, ['a_3', 'b%4', 'b-5']],
  ['queuesOnly with a status', { queuesOnly: true, status: ['ERROR', 'DELAYED'] }, ['b-5']],
  ['wasForkedFrom', { wasForkedFrom: true }, ['c-7']],
  ['not wasForkedFrom', { wasForkedFrom: false, startTime: at(1006) }, ['c-8']],
  ['isFork', { isFork: true }, ['c-6']],
  ['not isFork', { isFork: false, startTime: at(1005) }, ['c-7', 'c-8']],
  ['hasParent', { hasParent: true }, ['b-5']],
  ['not hasParent', { hasParent: false, endTime: at(1004) }, ['a-1', 'a-2', 'a_3', 'b%4']],
  ['attributes', { attributes: { a: 1 } }, ['c-6']],
  ['nested attributes', { attributes: { b: { c: [2] } } }, ['c-6']],
  ['empty attributes', { attributes: {} }, ['c-6', 'c-7']],
  ['sortDesc', { sortDesc: true, limit: 3 }, ['c-8', 'c-7', 'c-6']],
  ['offset', { offset: 6 }, ['c-7', 'c-8']],
  ['offset and limit', { offset: 1, limit: 2 }, ['a-2', 'a_3']],
  ['a limit of none', { limit: 0 }, []],
  ['several at once', { status: ['ENQUEUED', 'DELAYED'], queueName: 'q1', hasParent: true, limit: 5 }, ['b-5']],
  ['null for not given', { status: null as never, workflowIDs: null as never, limit: 1 }, ['a-1']],
];

describe('listing workflows', () => {
  forEachDialect((dialect) => {
    test('finds exactly the workflows that each filter means', async () => {
      const { operator, list } = await setup(dialect, ROWS);

      const found: [string, GetWorkflowsInput, string[]][] = [];
      for (const [name, input] of CASES) found.push([name, input, await list(input)]);
      const counted: [string, number][] = [];
      for (const [name, input] of CASES) {
        if (['limit', 'offset'].some((field) => field in input)) continue;
        counted.push([name, await countWorkflows(operator, input)]);
      }

      expect(found).toEqual(CASES);
      expect(counted).toEqual(
        CASES.filter(([, input]) => !('limit' in input || 'offset' in input)).map(([name, , ids]) => [
          name,
          ids.length,
        ]),
      );
    });

    test('lists those in queues without their outcomes', async () => {
      const { operator } = await setup(dialect, ROWS);

      const queued = await listQueuedWorkflows(operator, { sortDesc: true });

      expect(queued.map(({ workflowID, input, output }) => [workflowID, input, output])).toEqual([
        ['b-5', [1], undefined],
        ['b%4', [1], undefined],
        ['a_3', [1], undefined],
      ]);
    });
  });
});
