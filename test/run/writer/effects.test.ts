// Messages, events and stream values in the group writer: what is written together, what is refused, what is repeated.
import { describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { lock, type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database } from '../../../src/database/database.js';
import { findEvents, listEvents, upsertEvents } from '../../../src/features/message/events.sql.js';
import {
  consumeMessages,
  findOldestMessages,
  insertMessages,
  insertTogether,
  listMessages,
} from '../../../src/features/message/messages.sql.js';
import { loadSteps } from '../../../src/run/rows/steps.js';
import { insertStreamValues, listStreamValues, readStreams } from '../../../src/features/message/streams.sql.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { Writer } from '../../../src/run/writer/writer.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { explain } from '../../rig/plans.js';
import { startProxy } from '../../rig/proxy.js';
import { newMessage, newWorkflow, step } from '../../rig/records.js';

async function setup(dialect: TestDialect, given?: Database) {
  const database = given ?? (await dialect.create());
  const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
  const workflow = newWorkflow({ workflowID: 'w' });
  await writer.start(workflow);
  const { creator: owner } = workflow;
  const sender = { workflowID: 'w', owner };
  const checkpoint = (stepID: number, fields = {}) => ({ owner, step: step('w', stepID, fields) });
  const event = (stepID: number, key: string, text: string) => ({
    event: { ...sender, stepID, key, text, serialization: 'portable_json' },
    checkpoint: checkpoint(stepID),
  });
  const value = (offset: number, text = `${offset}`) => ({
    value: { ...sender, key: 's', offset, stepID: 9, text, serialization: 'portable_json' },
  });
  return { database, writer, sender, checkpoint, event, value };
}

const takeOver = (database: Database): Promise<unknown> =>
  database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = 'someone else' WHERE workflow_uuid = 'w'`);

const textsOf = (found: readonly { readonly text: string }[]): string[] => found.map(({ text }) => text);

describe('effects', () => {
  forEachDialect((dialect) => {
    test('only a commit of nothing but relaxed checkpoints is relaxed', async () => {
      const { database, writer, checkpoint } = await setup(dialect);
      const commit = vi.spyOn(database, 'commit');

      await writer.checkpoint(checkpoint(0), { relaxed: true });
      await Promise.all([writer.checkpoint(checkpoint(1), { relaxed: true }), writer.checkpoint(checkpoint(2))]);

      expect(commit.mock.calls.map(([, options]) => options?.relaxed)).toEqual([true, false]);
      expect(await loadSteps(database, ['w'])).toHaveLength(3);
    });

    test('an effect and its checkpoint are written together, and so is all else of the turn', async () => {
      const { database, writer, sender, checkpoint, event, value } = await setup(dialect);
      const message = newMessage();

      const verdicts = await Promise.all([
        writer.send({ sending: { message, sender }, checkpoint: { ...checkpoint(0), sentID: message.messageID } }),
        writer.setEvent(event(1, 'k', '1')),
        writer.setEvent(event(2, 'k', '2')),
        writer.append({ ...value(0), checkpoint: checkpoint(3) }),
        writer.append(value(1)),
        writer.finish({ workflowID: 'w', owner: sender.owner, status: 'SUCCESS', output: null, error: null }),
      ]);

      expect(verdicts).toEqual([
        { sent: 'sent', checkpoint: 'recorded' },
        ...Array.from({ length: 5 }, () => 'recorded'),
      ]);
      expect((await loadSteps(database, ['w'])).map(({ stepID }) => stepID)).toEqual([0, 1, 2, 3]);
      expect(textsOf(await listEvents(database, 'w'))).toEqual(['2']);
      expect(textsOf(await listStreamValues(database, 'w'))).toEqual(['0', '1']);
    });

    test('a workflow that begins, tells and ends in one commit has told', async () => {
      const database = await dialect.create();
      const writer = new Writer(database, { clock: systemClock, logger: silentLogger });
      const { workflowID, creator: owner, ...rest } = newWorkflow();
      const value = { workflowID, owner, key: 's', offset: 0, stepID: 0, text: '1', serialization: 'portable_json' };

      const [, appended, finished] = await Promise.all([
        writer.start({ workflowID, creator: owner, ...rest }),
        writer.append({ value }),
        writer.finish({ workflowID, owner, status: 'SUCCESS', output: null, error: null }),
      ]);

      expect([appended, finished]).toEqual(['recorded', 'recorded']);
      expect(textsOf(await listStreamValues(database, workflowID))).toEqual(['1']);
    });

    test('a missing destination touches only its own item, and leaves no checkpoint', async () => {
      const { database, writer, sender, checkpoint } = await setup(dialect);
      const lost = newMessage({ destinationID: 'nobody' });

      const [missing, sent] = await Promise.all([
        writer.send({ sending: { message: lost, sender }, checkpoint: { ...checkpoint(0), sentID: lost.messageID } }),
        writer.send({ sending: { message: newMessage() } }),
      ]);

      expect(missing).toEqual({ sent: 'missing', checkpoint: 'refused' });
      expect(sent.sent).toBe('sent');
      expect(await loadSteps(database, ['w'])).toEqual([]);
    });

    test('a run that has lost its workflow can send, receive, set and append nothing', async () => {
      const { database, writer, sender, checkpoint, event, value } = await setup(dialect);
      const waiting = newMessage();
      await writer.send({ sending: { message: waiting } });
      await takeOver(database);
      const message = newMessage({ topic: 'refused' });

      expect(
        await Promise.all([
          writer.send({ sending: { message, sender }, checkpoint: { ...checkpoint(0), sentID: message.messageID } }),
          writer.receive({ ...checkpoint(1), receivedID: waiting.messageID }),
          writer.setEvent(event(2, 'k', '1')),
          writer.append({ ...value(0), checkpoint: checkpoint(3) }),
          writer.append(value(1)),
        ]),
      ).toEqual([{ sent: 'lost', checkpoint: 'lost' }, 'lost', 'lost', 'lost', 'lost']);
      expect(await listMessages(database, 'w')).toMatchObject([{ topic: 't', isConsumed: false }]);
      expect([...(await listEvents(database, 'w')), ...(await listStreamValues(database, 'w'))]).toEqual([]);
    });

    test('a message is consumed by one receive only; the very same one again is settled as its own', async () => {
      const { database, writer, checkpoint } = await setup(dialect);
      const message = newMessage();
      await writer.send({ sending: { message } });
      const receipt = (stepID: number) => ({ ...checkpoint(stepID), receivedID: message.messageID });

      const verdicts = await Promise.all([writer.receive(receipt(0)), writer.receive(receipt(1))]);

      expect([...verdicts].sort()).toEqual(['recorded', 'refused']);
      const winner = verdicts.indexOf('recorded');
      expect(await writer.receive(receipt(winner))).toBe('recorded');
      expect(await writer.receive(receipt(2))).toBe('refused');
      expect((await loadSteps(database, ['w'])).map(({ stepID }) => stepID)).toEqual([winner]);
    });

    test('nothing of a run is written after an item of it that could not be, except its outcome', async () => {
      const { database, writer, sender, checkpoint, event, value } = await setup(dialect);
      const bad = checkpoint(0, { name: null });

      const results = await Promise.allSettled([
        writer.checkpoint(bad),
        writer.setEvent(event(1, 'k', '1')),
        writer.append(value(0)),
        writer.send({ sending: { message: newMessage(), sender } }),
        writer.send({ sending: { message: newMessage({ topic: 'of another' }) } }),
      ]);
      await expect(writer.append(value(1))).rejects.toThrow();
      const outcome = { workflowID: 'w', owner: sender.owner, status: 'ERROR', output: null, error: '1' } as const;

      expect(results.map(({ status }) => status)).toEqual([...Array<string>(4).fill('rejected'), 'fulfilled']);
      expect([...(await listEvents(database, 'w')), ...(await listStreamValues(database, 'w'))]).toEqual([]);
      expect(await listMessages(database, 'w')).toMatchObject([{ topic: 'of another' }]);
      expect(await writer.finish(outcome)).toBe('recorded');
    });

    test('a value at an offset that is taken is a conflict, the same value again is not', async () => {
      const { writer, value } = await setup(dialect);
      await writer.append(value(0));

      expect(
        await Promise.all([writer.append(value(0)), writer.append(value(0, 'other')), writer.append(value(1))]),
      ).toEqual(['recorded', 'conflict', 'recorded']);
    });

    test('a bulk is written as a whole or not at all, and may be repeated', async () => {
      const { database } = await setup(dialect);
      const sendings = Array.from({ length: 2500 }, (_, n) => ({ message: newMessage({ text: `${n}` }) }));
      const broken = [...sendings.slice(0, 5), { message: newMessage({ destinationID: 'nobody' }) }];

      const { verdicts } = await insertTogether(database, broken);
      expect(verdicts).toEqual([...Array<string>(5).fill('sent'), 'missing']);
      expect(await listMessages(database, 'w')).toEqual([]);

      const attempts = [await insertTogether(database, sendings), await insertTogether(database, sendings)];
      for (const attempt of attempts) expect(new Set(attempt.verdicts)).toEqual(new Set(['sent']));
      expect(textsOf(await listMessages(database, 'w'))).toEqual(sendings.map(({ message }) => message.text));
    });

    test('the hot statements look rows up by an index, on tables never analysed', async () => {
      const { database, writer, sender, checkpoint } = await setup(dialect);
      const others = Array.from({ length: 500 }, () => newWorkflow());
      await database.run(insertWorkflows(others));
      await Promise.all(
        others.map(({ workflowID }) =>
          writer.send({ sending: { message: newMessage({ destinationID: workflowID }) } }),
        ),
      );
      const key = { workflowID: 'w', topic: 't' };
      const plans = [
        insertMessages([{ message: newMessage(), sender }, { message: newMessage() }]),
        consumeMessages([{ ...checkpoint(0), receivedID: 'x' }]),
        upsertEvents([{ ...sender, stepID: 0, key: 'k', text: '1', serialization: '' }]),
        insertStreamValues([{ ...sender, stepID: 0, key: 'k', offset: 0, text: '1', serialization: '' }]),
      ].map((statement) => explain(database, statement));
      const reads = await readPlans(database, [
        (spied) => findOldestMessages(spied, [key, key]),
        (spied) => findEvents(spied, [{ workflowID: 'w', key: 'k' }]),
        (spied) => readStreams(spied, [{ workflowID: 'w', key: 'k', offset: 0 }]),
      ]);

      for (const plan of [...(await Promise.all(plans)), ...reads]) {
        expect(plan).not.toMatch(/Seq Scan|Bitmap|Hash|SCAN (w|d|m|n|e|s|p)\b/);
      }
      expect(reads[0]).toContain('idx_notifications_unconsumed');
    });
  });

  onlyOn('postgres', (dialect) => {
    test('a workflow to which a message is just being sent is not passed over by a claim', async () => {
      const { database } = await setup(dialect);

      const claimable = await database.transaction(async (tx) => {
        await tx.run(insertMessages([{ message: newMessage() }]));
        return database.run(sql`
          SELECT w.workflow_uuid FROM ${table('workflow_status')} AS w ${lock('skip', 'w')}`);
      });

      expect(claimable).toEqual([{ workflow_uuid: 'w' }]);
    });

    test.each(['answer', 'request'] as const)(
      'a commit whose %s is lost is repeated without doubling anything',
      async (what) => {
        const url = await dialect.createURL();
        const proxy = await startProxy(url);
        const { database, writer, sender, checkpoint, event, value } = await setup(
          dialect,
          await dialect.open(proxy.url),
        );
        const waiting = newMessage({ text: 'first' });
        await writer.send({ sending: { message: waiting } });
        const message = newMessage({ text: 'second' });

        if (what === 'answer') proxy.loseNextAnswer();
        else proxy.loseNextRequest();
        const verdicts = await Promise.all([
          writer.send({ sending: { message, sender }, checkpoint: { ...checkpoint(0), sentID: message.messageID } }),
          writer.receive({ ...checkpoint(1), receivedID: waiting.messageID }),
          writer.setEvent(event(2, 'k', '1')),
          writer.append({ ...value(0), checkpoint: checkpoint(3) }),
          writer.append(value(1)),
        ]);

        expect(verdicts).toEqual([{ sent: 'sent', checkpoint: 'recorded' }, ...Array<string>(4).fill('recorded')]);
        expect(await listMessages(database, 'w')).toMatchObject([
          { text: 'first', isConsumed: true },
          { text: 'second', isConsumed: false },
        ]);
        expect(textsOf(await listStreamValues(database, 'w'))).toEqual(['0', '1']);
        expect(await loadSteps(database, ['w'])).toHaveLength(4);
      },
    );
  });
});

/** The plans of the reads that the calls make. */
async function readPlans(
  database: Database,
  calls: readonly ((spied: Database) => Promise<unknown>)[],
): Promise<string[]> {
  const plans: string[] = [];
  const spied = Object.create(database, {
    read: {
      value: async (statement: Sql) => {
        plans.push(await explain(database, statement));
        return database.read(statement);
      },
    },
  }) as Database;
  for (const call of calls) await call(spied);
  return plans;
}
