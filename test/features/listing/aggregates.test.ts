import { describe, expect, test } from 'vitest';
import {
  getMetrics,
  getStepAggregates,
  type GetStepAggregatesInput,
  getWorkflowAggregates,
  type GetWorkflowAggregatesInput,
} from '../../../src/features/listing/aggregates.js';
import { insertCheckpoints } from '../../../src/run/rows/steps.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { newWorkflow, step } from '../../rig/records.js';
import { insert, workflow } from './rows.js';

const at = (ms: number): string => new Date(ms).toISOString();

async function setup(dialect: TestDialect) {
  const database = await dialect.create();
  await insert(database, [
    workflow('a', { name: 'mail', createdAt: 1000, startedAt: 1100, completedAt: 1500, queueName: 'q' }),
    workflow('b', { name: 'mail', createdAt: 1999, startedAt: 2500, completedAt: 2600, attributes: '{"x":1}' }),
    workflow('c', { name: 'bill', createdAt: 2000, status: 'ERROR', completedAt: 2001, executorID: 'vm' }),
    workflow('d', {
      name: 'bill',
      createdAt: 2500,
      status: 'PENDING',
      applicationVersion: 'v2',
      parentWorkflowID: 'a',
    }),
    workflow('e', { name: 'bill', createdAt: 2500, applicationName: 'other' }),
    workflow('f', { name: 'scan', createdAt: 2700, applicationName: null }),
  ]);
  return { database, operator: operatorOn(database) };
}

async function setupSteps(dialect: TestDialect) {
  const { database, operator } = await setup(dialect);
  await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: 'me' })]));
  const times = (startedAt: number, completedAt: number) => ({ startedAt, completedAt });
  const steps = [
    step('w', 0, { name: 'load', ...times(1000, 1010) }),
    step('w', 1, { name: 'load', ...times(1990, 2050), error: 'e', output: null }),
    step('w', 2, { name: 'store', ...times(2060, 2061) }),
    step('w', 3, { name: 'store', ...times(2060, 2900), applicationName: 'other' }),
  ];
  await database.run(insertCheckpoints(steps.map((one) => ({ owner: 'me', step: one }))));
  return { operator };
}

describe('aggregates', () => {
  forEachDialect((dialect) => {
    test('count workflows and find the longest times, by group', async () => {
      const { operator } = await setup(dialect);
      const ask = (input: GetWorkflowAggregatesInput) => getWorkflowAggregates(operator, input);
      const none = { count: null, minCreatedAt: null, maxQueueWaitMs: null, maxTotalLatencyMs: null };

      expect(await ask({ groupByName: true, selectCount: true, selectMinCreatedAt: true })).toEqual([
        { ...none, group: { name: 'bill' }, count: 2, minCreatedAt: 2000 },
        { ...none, group: { name: 'mail' }, count: 2, minCreatedAt: 1000 },
        { ...none, group: { name: 'scan' }, count: 1, minCreatedAt: 2700 },
      ]);
      expect(await ask({ timeBucketSizeMs: 1000, selectMaxQueueWaitMs: true, selectMaxTotalLatencyMs: true })).toEqual([
        { ...none, group: { time_bucket: '1000' }, maxQueueWaitMs: 501, maxTotalLatencyMs: 601 },
        { ...none, group: { time_bucket: '2000' }, maxQueueWaitMs: null, maxTotalLatencyMs: 1 },
      ]);
      expect(
        await ask({
          groupByStatus: true,
          groupByQueueName: true,
          groupByExecutorId: true,
          groupByApplicationVersion: true,
          groupByApplicationName: true,
          timeBucketSizeMs: 5000,
          selectCount: true,
          name: ['mail'],
          workflowIdPrefix: 'a',
        }),
      ).toEqual([
        {
          ...none,
          count: 1,
          group: {
            status: 'SUCCESS',
            queue_name: 'q',
            executor_id: 'local',
            application_version: 'v1',
            application_name: 'test',
            time_bucket: '0',
          },
        },
      ]);
    });

    test('take the filters of lists', async () => {
      const { operator } = await setup(dialect);
      const names = async (input: GetWorkflowAggregatesInput) =>
        (await getWorkflowAggregates(operator, { ...input, groupByName: true, selectCount: true })).map(
          ({ group, count }) => `${group['name']} ${count}`,
        );

      expect(await names({ status: ['ERROR', 'PENDING'] })).toEqual(['bill 2']);
      expect(await names({ appVersion: 'v2' })).toEqual(['bill 1']);
      expect(await names({ executorId: 'vm' })).toEqual(['bill 1']);
      expect(await names({ queueName: 'q' })).toEqual(['mail 1']);
      expect(await names({ workflowIDs: ['a', 'e'] })).toEqual(['bill 1', 'mail 1']);
      expect(await names({ applicationName: 'other' })).toEqual(['bill 1', 'scan 1']);
      expect(await names({ startTime: at(2000), endTime: at(2500) })).toEqual(['bill 2']);
      expect(await names({ completedAfter: at(2001), completedBefore: at(2600) })).toEqual(['bill 1', 'mail 1']);
      expect(await names({ dequeuedAfter: at(2500) })).toEqual(['mail 1']);
      expect(await names({ hasParent: true })).toEqual(['bill 1']);
      expect(await names({ queuesOnly: true })).toEqual([]);
      expect(await names({ attributes: { x: 1 } })).toEqual(['mail 1']);
    });

    test('count steps and find the longest, by group', async () => {
      const { operator } = await setupSteps(dialect);
      const ask = (input: GetStepAggregatesInput) => getStepAggregates(operator, input);

      expect(
        await ask({ groupByFunctionName: true, groupByStatus: true, selectCount: true, selectMaxDurationMs: true }),
      ).toEqual([
        { group: { function_name: 'load', status: 'ERROR' }, count: 1, maxDurationMs: 60 },
        { group: { function_name: 'load', status: 'SUCCESS' }, count: 1, maxDurationMs: 10 },
        { group: { function_name: 'store', status: 'SUCCESS' }, count: 1, maxDurationMs: 1 },
      ]);
      expect(await ask({ timeBucketSizeMs: 1000, selectCount: true, applicationName: ['test', 'other'] })).toEqual([
        { group: { time_bucket: '1000' }, count: 1, maxDurationMs: null },
        { group: { time_bucket: '2000' }, count: 3, maxDurationMs: null },
      ]);
      const counts = async (input: GetStepAggregatesInput) =>
        (await ask({ ...input, groupByFunctionName: true, selectCount: true })).map(
          ({ group, count }) => `${group['function_name']} ${count}`,
        );
      expect(await counts({ status: 'ERROR' })).toEqual(['load 1']);
      expect(await counts({ functionName: 'store' })).toEqual(['store 1']);
      expect(await counts({ workflowIdPrefix: '%' })).toEqual([]);
      expect(await counts({ completedAfter: at(2050), completedBefore: at(2061) })).toEqual(['load 1', 'store 1']);
    });

    test('count by name what was created and completed in a span of time, whose end does not belong to it', async () => {
      const { operator } = await setupSteps(dialect);

      expect(await getMetrics(operator, { startTime: at(1000), endTime: at(2500) })).toEqual([
        { metricType: 'workflow_count', metricName: 'bill', value: 1 },
        { metricType: 'workflow_count', metricName: 'mail', value: 2 },
        { metricType: 'step_count', metricName: 'load', value: 2 },
        { metricType: 'step_count', metricName: 'store', value: 1 },
      ]);
      expect(await getMetrics(operator, { startTime: at(2500), endTime: at(3000) }, ['other'])).toEqual([
        { metricType: 'workflow_count', metricName: 'bill', value: 1 },
        { metricType: 'workflow_count', metricName: 'scan', value: 1 },
        { metricType: 'step_count', metricName: 'store', value: 1 },
      ]);
    });

    test('that cannot be meant are refused', async () => {
      const { operator } = await setup(dialect);
      const ask = (input: object) => getWorkflowAggregates(operator, input);
      const askSteps = (input: object) => getStepAggregates(operator, input);
      const group = { groupByStatus: true, selectCount: true };

      await expect(ask({ selectCount: true })).rejects.toThrow('At least one group_by flag must be set to True');
      await expect(ask({ groupByStatus: true })).rejects.toThrow('At least one select_ flag must be set to True');
      await expect(ask({ ...group, timeBucketSizeMs: 0 })).rejects.toThrow('time_bucket_size_ms must be > 0');
      await expect(ask({ ...group, timeBucketSizeMs: -5 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(ask({ ...group, groupByColour: true })).rejects.toThrow(/unknown field "groupByColour"/);
      await expect(ask({ ...group, status: 'x' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await expect(askSteps({ ...group, status: 'PENDING' })).rejects.toThrow(/one of SUCCESS, ERROR/);
      await expect(askSteps({ ...group, queueName: 'q' })).rejects.toThrow(/unknown field "queueName"/);
      await expect(askSteps({ selectCount: true })).rejects.toThrow(/group_by/);
      await expect(getMetrics(operator, { startTime: 'x', endTime: at(1) })).rejects.toThrow(/startTime/);
    });
  });
});
