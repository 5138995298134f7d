// Messages that a workflow publishes are events of its history, if the transaction commits.
import { describe, expect, test } from 'vitest';
import { DIALECTS, setOutbox } from './scene.js';

describe.each(DIALECTS)('on %s', (_dialect, adapter) => {
  test.each([false, true])(
    'a published message is an event once its transaction has committed (shared: %s)',
    async (isShared) => {
      const { DBOS, outbox, source } = await setOutbox(adapter, {
        isShared,
        isLaunched: false,
        config: { history: 'full' },
      });
      let attempts = 0;
      const published: string[] = [];
      const order = DBOS.registerWorkflow(
        async () => {
          const publish = async (): Promise<string> => {
            attempts += 1;
            const { messageID } = await outbox.publish('orders', { attempt: attempts });
            return messageID;
          };
          published.push(await source.runTransaction(publish, { name: 'publish' }));
          const failing = async (): Promise<void> => {
            await outbox.publish('orders', 'rolled back');
            throw new Error('on purpose');
          };
          await source.runTransaction(failing, { name: 'failing' }).catch(() => undefined);
        },
        { name: 'order' },
      );
      await DBOS.launch();

      await (await DBOS.startWorkflow(order, { workflowID: 'w' })()).getResult();

      const events = [];
      for await (const event of DBOS.getHistory('w', { types: ['OutboxPublished'] })) events.push(event);
      expect(events).toMatchObject([{ step: 0, details: { message_id: published[0], topic: 'orders' } }]);
    },
  );
});
