// Waits of an engine that gets no notifications: they poll, at the caller's interval if there is one.
import { expect, test } from 'vitest';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

const OFTEN = { pollingIntervalMs: 40 };

forEachDialect((dialect) => {
  /** An engine whose time stands still, so that it never polls, and another one that works. Neither notifies. */
  async function setup() {
    const clock = new ManualClock(Date.now());
    const config = { useListenNotify: false, applicationVersion: 'v' };
    const { DBOS, url } = await createEngine(dialect, config, { clock });
    const { DBOS: other } = await createEngine(dialect, { ...config, systemDatabaseUrl: url, executorID: 'other' });
    const target = () => DBOS.retrieveWorkflow('target');
    const waits = {
      recv: () => DBOS.recv('topic', { timeoutSeconds: 1000, ...OFTEN }),
      getEvent: () => DBOS.getEvent('target', 'key', OFTEN),
      getResult: () => DBOS.getResult('target', OFTEN),
      getResultOfHandle: () => target().getResult(OFTEN),
      waitFirst: async () => (await DBOS.waitFirst([target()], OFTEN)).workflowID,
      waitAll: async () => (await DBOS.waitAll([target()], OFTEN)).length,
    };
    const wait = DBOS.registerWorkflow((what: keyof typeof waits): Promise<unknown> => waits[what](), { name: 'wait' });
    const work = other.registerWorkflow(
      async () => {
        await other.setEvent('key', 'event');
        return 'result';
      },
      { name: 'work' },
    );
    await DBOS.launch();
    await other.launch();
    return { DBOS, clock, names: Object.keys(waits) as (keyof typeof waits)[], wait, other, work };
  }

  test('an operation of a workflow polls at the interval that it is given', async () => {
    const { DBOS, clock, names, wait, other, work } = await setup();
    const handles = await Promise.all(names.map((name) => DBOS.startWorkflow(wait, { workflowID: name })(name)));
    await until(() => clock.count(40) === names.length);

    await other.send('recv', 'message', 'topic');
    await (await other.startWorkflow(work, { workflowID: 'target' })()).getResult();
    // Less than the default interval.
    clock.advance(40);

    const results = await Promise.all(handles.map((handle) => handle.getResult()));
    expect(results).toEqual(['message', 'event', 'result', 'result', 'target', 1]);
  });
});
