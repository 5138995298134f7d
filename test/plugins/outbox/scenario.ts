// What the processes of the kill tests publish, and how they handle it.
import type { EngineUnderTest } from '../transaction/scene.js';
import type { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import type { OutboxDataSource } from '../../../src/plugins/outbox/database.js';
import { Reject } from '../../../src/plugins/outbox/consume/outcomes.js';

export const SCENARIOS = ['publish', 'handler', 'transactional', 'reject', 'workflow'] as const;
export type Scenario = (typeof SCENARIOS)[number];

/** Around the commit that ends the scenario's work. */
export type KillPoint = 'before' | 'after';

const note = (text: string): string => `INSERT INTO effects (workflow_id, note) VALUES ('w', '${text}')`;

/** Short, so that a message of a killed process soon comes back. */
const LEASE_MS = 1000;

export function subscribe(scenario: Scenario, { DBOS, source, run }: EngineUnderTest, outbox: OutboxBroker): void {
  const record = (text: string): Promise<unknown> =>
    source.runTransaction(() => run(note(text)).then(() => null), { name: 'note' });
  switch (scenario) {
    case 'publish':
      return;
    case 'handler':
      return outbox.on('topic', () => record('handled'), { lease: LEASE_MS });
    case 'transactional':
      return outbox.on('topic', () => run(note('handled')), {
        lease: LEASE_MS,
        transactional: source as unknown as OutboxDataSource,
      });
    case 'reject':
      return outbox.on(
        'topic',
        () => {
          throw new Reject('never');
        },
        { lease: LEASE_MS },
      );
    case 'workflow': {
      const workflow = DBOS.registerWorkflow(async (_body: number) => void (await record('handled')), { name: 'flow' });
      return outbox.on<number>('topic', workflow);
    }
  }
}

export function publishOne({ source, run }: EngineUnderTest, outbox: OutboxBroker, inside = () => {}): Promise<void> {
  return source.runTransaction(
    async () => {
      await run(note('published'));
      await outbox.publish('topic', 1);
      inside();
    },
    { name: 'publish' },
  );
}
