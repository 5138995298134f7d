// Outcomes under faults: callers see what is durable, and a workflow always ends.
import { describe, expect, test } from 'vitest';
import { deferred } from '../../src/kernel/base/deferred.js';
import { topics } from '../../src/database/notify/topics.js';
import { resumeWorkflows } from '../../src/run/rows/lifecycle.js';
import { INTERNAL_QUEUE } from '../../src/features/queue/queue.js';
import type { DBOSConfig } from '../../src/run/config/config.js';
import { forEachDialect, onlyOn, type TestDialect } from '../rig/dialects.js';
import { createEngine, engineOf } from '../rig/engines.js';
import { until } from '../rig/manual-clock.js';
import { startProxy } from '../rig/proxy.js';

describe('outcomes', () => {
  forEachDialect((dialect) => {
    test('a workflow that its own process claims again runs once: the older run stops before the new one starts', async () => {
      const { DBOS } = await createEngine(dialect, { useListenNotify: false });
      const gate = deferred<void>();
      const bodies: number[] = [];
      let runs = 0;
      const workflow = DBOS.registerWorkflow(
        async () => {
          const run = ++runs;
          await DBOS.runStep(async () => 0, { name: 'before' });
          await gate.promise;
          for (let step = 0; step < 3; step += 1)
            await DBOS.runStep(async () => void bodies.push(run), { name: 'after' });
          return run;
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      const { runtime } = engineOf(DBOS);
      await until(async () => (await DBOS.listWorkflowSteps('w'))?.length === 1);

      // As another process would, without a word to this one.
      await resumeWorkflows(runtime.database, ['w']);
      runtime.bus.publish(topics.work, { queueName: INTERNAL_QUEUE, partitionKey: null });
      await until(() => runs === 2);
      gate.resolve();

      expect(await handle.getResult()).toBe(2);
      expect(bodies).toEqual([2, 2, 2]);
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'SUCCESS', output: 2 });
    });

    test('a result that cannot be stored ends its workflow as an error, instead of running it again and again', async () => {
      const { DBOS, refuse } = await setup(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'a result', { name: 'workflow' });
      await DBOS.launch();
      await refuse('SUCCESS');

      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

      await expect(handle.getResult()).rejects.toMatchObject({ code: 'OUTCOME_NOT_STORABLE' });
      await expect(DBOS.retrieveWorkflow('w').getResult()).rejects.toMatchObject({ code: 'OUTCOME_NOT_STORABLE' });
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'ERROR' });
    });

    test('a workflow none of whose outcomes can be stored becomes a dead letter', async () => {
      const { DBOS, refuse } = await setup(dialect);
      const workflow = DBOS.registerWorkflow(async () => 'a result', { name: 'workflow' });
      await DBOS.launch();
      await refuse('SUCCESS', 'ERROR');

      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

      await expect(handle.getResult()).rejects.toMatchObject({
        code: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
      });
      expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' });
    });

    test('a workflow whose serializer fails at its outcome and at every error becomes a dead letter', async () => {
      let isBroken = false;
      const serializer = {
        name: () => 'brittle',
        stringify(value: unknown) {
          if (isBroken) throw new Error('broken');
          return JSON.stringify(value);
        },
        parse: (text: string | null | undefined) => (text == null ? null : (JSON.parse(text) as unknown)),
      };
      const { DBOS } = await setup(dialect, { serializer });
      const workflow = DBOS.registerWorkflow(
        async () => {
          isBroken = true;
        },
        { name: 'workflow' },
      );
      await DBOS.launch();

      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

      await expect(handle.getResult()).rejects.toMatchObject({
        code: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
      });
    });
  });

  onlyOn('postgres', (dialect) => {
    test.each(['57014', '25006', '28000', '42501', '53100', '58030', 'XX000'])(
      'a step that meets SQLSTATE %s for a moment does not fail its workflow',
      async (state) => {
        const { DBOS } = await createEngine(dialect);
        const bodies: string[] = [];
        const workflow = DBOS.registerWorkflow(
          async () => {
            await DBOS.runStep(async () => void bodies.push('charge'), { name: 'charge' });
            return DBOS.runStep(async () => `shipped after ${bodies.length}`, { name: 'ship' });
          },
          { name: 'workflow' },
        );
        await DBOS.launch();
        const { database } = engineOf(DBOS).runtime;
        const script = (text: string) => database.exclusive((connection) => connection.script(text));
        await script(`
          CREATE SEQUENCE failures;
          CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN
            IF nextval('failures') < 8 THEN RAISE EXCEPTION 'for a moment' USING ERRCODE = '${state}'; END IF;
            RETURN NEW;
          END $$;
          CREATE TRIGGER fail BEFORE INSERT ON dbos.operation_outputs FOR EACH ROW EXECUTE FUNCTION fail()`);

        const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();

        expect(await handle.getResult()).toBe('shipped after 1');
        expect(await DBOS.getWorkflowStatus('w')).toMatchObject({ status: 'SUCCESS' });
        expect(bodies).toEqual(['charge']);
      },
    );

    test('a caller sees no outcome that a shutdown kept from being recorded', async () => {
      const url = await dialect.createURL();
      const proxy = await startProxy(url);
      const { DBOS } = await createEngine(dialect, { systemDatabaseUrl: proxy.url });
      const gate = deferred<void>();
      const workflow = DBOS.registerWorkflow(
        async () => {
          await gate.promise;
          throw new Error('not recorded');
        },
        { name: 'workflow' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(workflow, { workflowID: 'w' })();
      proxy.cut();
      gate.resolve();

      const result = expect(handle.getResult()).rejects.toMatchObject({ code: 'DATABASE_CLOSED' });
      await engineOf(DBOS).runtime.store.writer.abandon();
      await DBOS.shutdown();

      await result;
    });
  });
});

async function setup(dialect: TestDialect, config: Partial<DBOSConfig> = {}) {
  const { DBOS } = await createEngine(dialect, config);
  /** Lets the database refuse these outcomes, as it refuses a text with a NUL character. */
  const refuse = async (...statuses: string[]): Promise<void> => {
    const { database } = engineOf(DBOS).runtime;
    const list = statuses.map((status) => `'${status}'`).join(', ');
    const script =
      dialect.name === 'sqlite'
        ? ['INSERT', 'UPDATE'].map(
            (verb) => `
              CREATE TRIGGER refuse_${verb} BEFORE ${verb} ON workflow_status WHEN NEW.status IN (${list})
              BEGIN SELECT RAISE(ABORT, 'refused'); END;`,
          )
        : [`ALTER TABLE dbos.workflow_status ADD CONSTRAINT refuse CHECK (status NOT IN (${list})) NOT VALID;`];
    await database.exclusive((connection) => connection.script(script.join('\n')));
  };
  return { DBOS, refuse };
}
