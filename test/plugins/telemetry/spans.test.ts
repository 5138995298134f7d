// Spans of workflows, steps and transactions, as a provider of OpenTelemetry gets them.
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { beforeEach, describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import type { DBOSConfig } from '../../../src/index.js';
import { type Adapter, ADAPTERS } from '../transaction/adapters.js';
import { createGenerations } from '../../run/succession.js';
import { createScene, HOUR, untilParked } from '../../features/parking/parking-scene.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';

const exporter = new InMemorySpanExporter();
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

beforeEach(() => exporter.reset());

/** The ended spans of a name. */
function spansOf(name: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name === name);
}

/** The one span of a name, as soon as it has ended: that of a workflow ends after its handle has resolved. */
async function spanOf(name: string): Promise<ReadableSpan> {
  await until(() => spansOf(name).length > 0);
  const [span, ...others] = spansOf(name);
  expect(others).toEqual([]);
  return span!;
}

const idOf = (span: ReadableSpan): string => span.spanContext().spanId;
const parentOf = (span: ReadableSpan): string | undefined => span.parentSpanContext?.spanId;

forEachDialect((dialect) => {
  /** An engine with a workflow of one step. */
  async function setup(config: Partial<DBOSConfig> = {}, step = async (): Promise<string> => Promise.resolve('done')) {
    const { DBOS } = await createEngine(dialect, { tracingEnabled: true, executorID: 'e1', ...config });
    const workflow = DBOS.registerWorkflow(() => DBOS.runStep(step, { name: 'step' }), { name: 'workflow' });
    return { DBOS, workflow };
  }

  describe('a workflow and its step', () => {
    test('have spans, one below the other', async () => {
      const { DBOS, workflow } = await setup();
      await DBOS.launch();

      await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

      const [ofWorkflow, ofStep] = [await spanOf('workflow'), await spanOf('step')];
      expect(parentOf(ofWorkflow)).toBeUndefined();
      expect(parentOf(ofStep)).toBe(idOf(ofWorkflow));
      expect(ofWorkflow.instrumentationScope.name).toBe('dbos-tracer');
      expect(ofWorkflow).toMatchObject({
        status: { code: 1 },
        attributes: {
          operationUUID: 'w',
          operationType: 'workflow',
          operationName: 'workflow',
          status: 'SUCCESS',
          executorID: 'e1',
          applicationVersion: DBOS.applicationVersion,
          authenticatedUser: '',
          authenticatedRoles: [],
        },
      });
      expect(ofStep).toMatchObject({ status: { code: 1 }, attributes: { operationType: 'step', operationUUID: 'w' } });
      expect(ofStep.attributes).not.toHaveProperty('cached');
    });

    test('are below the active span of the caller, and above those of other libraries', async () => {
      const { DBOS, workflow } = await setup({}, async () => {
        trace.getTracer('library').startSpan('query').end();
        return Promise.resolve('done');
      });
      await DBOS.launch();
      const request = trace.getTracer('library').startSpan('request');

      await context.with(trace.setSpan(ROOT_CONTEXT, request), async () => workflow());

      expect(parentOf(await spanOf('workflow'))).toBe(request.spanContext().spanId);
      expect(parentOf(await spanOf('query'))).toBe(idOf(await spanOf('step')));
    });

    test('have no spans unless tracing is enabled', async () => {
      const { DBOS, workflow } = await setup({ tracingEnabled: false });
      await DBOS.launch();

      await workflow();

      expect(exporter.getFinishedSpans()).toEqual([]);
      expect(DBOS.span).toBeUndefined();
      expect(DBOS.tracer).toBeUndefined();
    });

    test('name attributes as OpenTelemetry suggests, if asked to', async () => {
      const { DBOS, workflow } = await setup({ otelAttributeFormat: 'semconv' });
      await DBOS.launch();

      await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

      const { attributes } = await spanOf('step');
      expect(attributes).toMatchObject({ 'dbos.operation.workflow_id': 'w', 'dbos.operation.type': 'step' });
      expect(attributes).not.toHaveProperty('operationUUID');
    });

    test('say how they failed', async () => {
      const { DBOS, workflow } = await setup({}, () => Promise.reject(new Error('out of stock')));
      await DBOS.launch();

      await expect(workflow()).rejects.toThrow('out of stock');

      const failed = { status: { code: 2, message: 'out of stock' } };
      expect(await spanOf('step')).toMatchObject(failed);
      expect(await spanOf('workflow')).toMatchObject({ ...failed, attributes: { status: 'ERROR' } });
    });
  });

  test('the span of a step tells of attempts that failed', async () => {
    const { DBOS } = await createEngine(dialect, { tracingEnabled: true });
    const policy = { retriesAllowed: true, maxAttempts: 3, intervalSeconds: 0.001, backoffRate: 1 };
    let attempts = 0;
    const flaky = async (): Promise<number> => {
      attempts += 1;
      if (attempts === 1) throw new Error('busy');
      return Promise.resolve(attempts);
    };
    const workflow = DBOS.registerWorkflow(() => DBOS.runStep(flaky, { name: 'flaky', ...policy }), {
      name: 'workflow',
    });
    await DBOS.launch();

    await workflow();

    const span = await spanOf('flaky');
    expect(span).toMatchObject({ status: { code: 1 }, attributes: policy });
    expect(span.events).toMatchObject([{ name: 'Step attempt 1 failed', attributes: { error: 'busy' } }]);
  });

  test('a child is below its parent, a workflow from a queue below none', async () => {
    const { DBOS } = await createEngine(dialect, { tracingEnabled: true });
    const child = DBOS.registerWorkflow(() => Promise.resolve(1), { name: 'child' });
    const queued = DBOS.registerWorkflow(() => Promise.resolve(2), { name: 'queued' });
    const parent = DBOS.registerWorkflow(
      async () => {
        await child();
        await (await DBOS.startWorkflow(queued, { queueName: 'q' })()).getResult();
      },
      { name: 'parent' },
    );
    await DBOS.launch();
    await DBOS.registerQueue('q');

    await parent();

    expect(parentOf(await spanOf('child'))).toBe(idOf(await spanOf('parent')));
    const ofQueued = await spanOf('queued');
    expect(parentOf(ofQueued)).toBeUndefined();
    expect(ofQueued.attributes).toMatchObject({ queueName: 'q' });
  });

  test('a recovered workflow has another span, and its replayed steps are marked', async () => {
    const { first, second } = await createGenerations(dialect, { tracingEnabled: true });
    const [reached, never] = [deferred<void>(), deferred<void>()];
    const body = (DBOS: typeof first, last: () => Promise<void>) => async () => {
      await DBOS.runStep(() => Promise.resolve(1), { name: 'paid' });
      await last();
    };
    const workflow = first.registerWorkflow(
      body(first, () => {
        reached.resolve();
        return never.promise;
      }),
      { name: 'workflow' },
    );
    second.registerWorkflow(
      body(second, () => Promise.resolve()),
      { name: 'workflow' },
    );
    await first.launch();
    await first.startWorkflow(workflow, { workflowID: 'w' })();
    await reached.promise;
    await first.shutdown();
    await second.launch();

    await second.retrieveWorkflow('w').getResult();

    await until(() => spansOf('workflow').some(({ attributes }) => attributes['status'] === 'SUCCESS'));
    expect(spansOf('paid').map(({ attributes }) => attributes['cached'])).toEqual([undefined, true]);
  });

  test('the span of a workflow that leaves memory ends, and another begins when it continues', async () => {
    const scene = await createScene(dialect, { tracingEnabled: true });
    const { clock, DBOS } = scene;
    const sleeper = DBOS.registerWorkflow(() => DBOS.sleep(HOUR), { name: 'sleeper' });
    await DBOS.launch();
    const handle = await DBOS.startWorkflow(sleeper, { workflowID: 'w' })();
    await untilParked(scene, 'w');

    expect((await spanOf('sleeper')).attributes).toMatchObject({ status: 'PENDING' });

    clock.advance(HOUR);
    await handle.getResult();
    await until(() => spansOf('sleeper').length === 2);
    expect(spansOf('sleeper')[1]?.attributes).toMatchObject({ status: 'SUCCESS' });
  });

  test('a transaction has a span, also if it is replayed', async () => {
    const { DBOS, url } = await createEngine(dialect, { tracingEnabled: true });
    const adapter: Adapter = ADAPTERS[dialect.name === 'postgres' ? 'node-postgres' : 'better-sqlite3'];
    const { source, run } = await adapter.create(url, DBOS, '');
    const workflow = DBOS.registerWorkflow(
      () => source.runTransaction(async () => (await run('SELECT 1 AS one')).length, { name: 'pay' }),
      { name: 'workflow' },
    );
    await DBOS.launch();
    await (await DBOS.startWorkflow(workflow, { workflowID: 'w' })()).getResult();

    await (await DBOS.forkWorkflow('w', 1)).getResult();

    await until(() => spansOf('pay').length === 2);
    const [ran, replayed] = spansOf('pay');
    expect(ran).toMatchObject({
      status: { code: 1 },
      attributes: { operationType: 'transaction', operationUUID: 'w' },
    });
    expect(ran?.attributes).not.toHaveProperty('cached');
    expect(replayed?.attributes).toMatchObject({ cached: true });
    expect(parentOf(ran!)).toBe(idOf(spansOf('workflow')[0]!));
  });

  test('code finds its span and makes spans of its own', async () => {
    const { DBOS, workflow } = await setup({}, async () => {
      DBOS.span?.setAttribute('order', 7).addEvent('charged', { amount: 12 });
      const span = DBOS.tracer?.startSpan('own', { a: 1 });
      if (span) DBOS.tracer?.endSpan(span);
      return Promise.resolve('done');
    });
    await DBOS.launch();

    await workflow();

    const ofStep = await spanOf('step');
    expect(ofStep.attributes).toMatchObject({ order: 7 });
    expect(ofStep.events).toMatchObject([{ name: 'charged', attributes: { amount: 12 } }]);
    expect(await spanOf('own')).toMatchObject({ attributes: { a: 1 } });
    expect(parentOf(await spanOf('own'))).toBe(idOf(ofStep));
  });
});
