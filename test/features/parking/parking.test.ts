// Parking a workflow while what it waits for arrives. Whatever the order, the workflow is not left parked.
import { expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { type StoredState, StatusString, TRANSITIONS } from '../../../src/kernel/workflow/status.js';
import { type Sql, sql, table } from '../../../src/kernel/sql/sql.js';
import type { Database, Executor } from '../../../src/database/database.js';
import { insertMessages } from '../../../src/features/message/messages.sql.js';
import { upsertEvents } from '../../../src/features/message/events.sql.js';
import { type Park, parkWorkflows, takeBack } from '../../../src/features/parking/parking.sql.js';
import {
  type AwaitedRow,
  findMissed,
  findParked,
  hasParkedWaits,
  listParkedWaits,
  wakeParked,
} from '../../../src/features/parking/waits.sql.js';
import { findOwners } from '../../../src/run/rows/owners.js';
import { bounceIfDelayed, releaseUnlessDelayed } from '../../../src/features/queue/debounce.sql.js';
import { delayIfWaiting, enqueueDue } from '../../../src/features/queue/delays.sql.js';
import { cancelWorkflows } from '../../../src/run/rows/lifecycle.js';
import { findWorkflows, finishIfOwned, insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn, type TestDialect } from '../../rig/dialects.js';
import { until } from '../../rig/manual-clock.js';
import { newMessage, newWorkflow } from '../../rig/records.js';

const FAR = 4_000_000_000_000;
const OWNER = 'incarnation.1';
const OTHER = { workflowID: 'other', owner: 'incarnation.2' };

/** What the workflow "w" waits for, and the statement that brings it. */
const arrivals: Record<string, { awaited: AwaitedRow; arrive: () => Sql }> = {
  message: {
    awaited: { kind: 'message', workflowID: 'w', topic: 't' },
    arrive: () => insertMessages([{ message: newMessage({ destinationID: 'w', topic: 't' }) }]),
  },
  event: {
    awaited: { kind: 'event', workflowID: 'other', key: 'k' },
    arrive: () => upsertEvents([{ ...OTHER, stepID: 1, key: 'k', text: '1', serialization: 'portable_json' }]),
  },
  outcome: {
    awaited: { kind: 'outcome', workflowID: 'other' },
    arrive: () => finishIfOwned([{ ...OTHER, status: 'SUCCESS', output: '1', error: null }]),
  },
  'message of plain SQL': {
    awaited: { kind: 'message', workflowID: 'w', topic: 't' },
    arrive: () =>
      sql`INSERT INTO ${table('notifications')} (message_uuid, destination_uuid, topic, message) VALUES ('m', 'w', 't', '1')`,
  },
  deletion: {
    awaited: { kind: 'outcome', workflowID: 'other' },
    arrive: () => sql`DELETE FROM ${table('workflow_status')} WHERE workflow_uuid = 'other'`,
  },
  'cancellation in plain SQL': {
    awaited: { kind: 'outcome', workflowID: 'other' },
    arrive: () => sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED' WHERE workflow_uuid = 'other'`,
  },
};
const kinds = Object.keys(arrivals);

function parkOf(kind: string): Park {
  const { awaited } = arrivals[kind] as { awaited: AwaitedRow };
  return { workflowID: 'w', owner: OWNER, dueAt: FAR, awaited: [awaited] };
}

function arrivalOf(kind: string): Sql {
  return (arrivals[kind] as { arrive: () => Sql }).arrive();
}

async function setup(dialect: TestDialect) {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  await database.run(insertWorkflows([newWorkflow({ workflowID: 'w', owner: OWNER }), newWorkflow(OTHER)]));
  return { url, database };
}

async function statusOf(database: Database): Promise<string> {
  const [row] = await database.read(sql`SELECT status FROM ${table('workflow_status')} WHERE workflow_uuid = 'w'`);
  return row?.['status'] as string;
}

forEachDialect((dialect) => {
  test.each(kinds)('a %s that arrives after it wakes a parked workflow', async (kind) => {
    const { database } = await setup(dialect);
    expect(await parkWorkflows(database, [parkOf(kind)])).toEqual(['parked']);
    expect(await statusOf(database)).toBe('DELAYED');

    await database.run(arrivalOf(kind));

    expect(await statusOf(database)).toBe('ENQUEUED');
    expect(await database.read(sql`SELECT wait_key FROM ${table('parked_waits')}`)).toEqual([]);
  });

  test.each(kinds)('a workflow for which a %s is there is not parked', async (kind) => {
    const { database } = await setup(dialect);
    await database.run(arrivalOf(kind));

    expect(await parkWorkflows(database, [parkOf(kind)])).toEqual(['refused']);
    expect(await statusOf(database)).toBe('PENDING');
  });

  test('a workflow that another run owns is lost, and is not parked', async () => {
    const { database } = await setup(dialect);

    const verdicts = await parkWorkflows(database, [{ ...parkOf('message'), owner: 'incarnation.9' }]);

    expect(verdicts).toEqual(['lost']);
    expect(await statusOf(database)).toBe('PENDING');
  });

  test('parking again after a lost answer finds the workflow parked', async () => {
    const { database } = await setup(dialect);
    const park = { ...parkOf('message'), awaited: [] };

    expect(await parkWorkflows(database, [park])).toEqual(['parked']);
    expect(await parkWorkflows(database, [park])).toEqual(['parked']);
  });

  test('only the run that parked a workflow takes it back', async () => {
    const { database } = await setup(dialect);
    await parkWorkflows(database, [parkOf('message')]);

    expect(await takeBack(database, { workflowID: 'w', owner: 'incarnation.9' })).toBe(false);
    expect(await takeBack(database, { workflowID: 'w', owner: OWNER })).toBe(true);
    expect(await statusOf(database)).toBe('PENDING');
  });

  const ends: Record<string, (database: Database) => Promise<unknown>> = {
    'is due': async (database) => {
      await database.run(
        sql`UPDATE ${table('workflow_status')} SET delay_until_epoch_ms = 1 WHERE workflow_uuid = 'w'`,
      );
      return enqueueDue(database, newWorkflow().applicationName ?? '', 10);
    },
    'is cancelled': (database) => cancelWorkflows(database, ['w']),
    'is taken back': (database) => takeBack(database, { workflowID: 'w', owner: OWNER }),
    'is enqueued by another program': (database) =>
      database.run(sql`UPDATE ${table('workflow_status')} SET status = 'ENQUEUED' WHERE workflow_uuid = 'w'`),
  };

  test.each(Object.keys(ends))('the waits of a workflow that %s are gone', async (end) => {
    const { database } = await setup(dialect);
    await parkWorkflows(database, [parkOf('message')]);
    expect(await hasParkedWaits(database)).toBe(true);

    await ends[end]?.(database);

    expect(await statusOf(database)).not.toBe('DELAYED');
    expect(await hasParkedWaits(database)).toBe(false);
  });

  const verbs = {
    park: async (database: Database) =>
      (await parkWorkflows(database, [{ ...parkOf('message'), dueAt: FAR + 1 }]))[0] === 'parked',
    wake: async (database: Database) => {
      await database.run(arrivalOf('message'));
      return true;
    },
    takeBack: (database: Database) => takeBack(database, { workflowID: 'w', owner: OWNER }),
    delay: (database: Database) => delayIfWaiting(database, 'w', { delayMs: 5 }),
  } as const;
  const states = [...(Object.keys(StatusString) as StoredState[]), 'PARKED'] as const;
  const cases = (Object.keys(verbs) as (keyof typeof verbs)[]).flatMap((verb) =>
    states.map((state) => [verb, state] as const),
  );

  test.each(cases)('%s of a workflow that is %s does what the table of transitions says', async (verb, state) => {
    const { database } = await setup(dialect);
    if (state === 'PARKED') await parkWorkflows(database, [parkOf('message')]);
    else {
      // Nobody owns one that is delayed.
      const owner = state === 'DELAYED' ? sql`NULL` : sql`owner_xid`;
      await database.run(sql`
        UPDATE ${table('workflow_status')} SET status = ${state}, owner_xid = ${owner} WHERE workflow_uuid = 'w'`);
    }
    const stateNow = async () => {
      const [row] = await findWorkflows(database, ['w']);
      return row?.status === 'DELAYED' && row.owner === OWNER ? 'PARKED' : row?.status;
    };

    await verbs[verb](database);

    const { from, to } = TRANSITIONS[verb];
    expect(await stateNow()).toBe((from as readonly StoredState[]).includes(state) ? to : state);
  });

  test('what a workflow waits for is read up to a limit', async () => {
    const { database } = await setup(dialect);
    const awaited = ['a', 'b', 'c'].map((key) => ({ kind: 'event', workflowID: 'other', key }) as const);
    await parkWorkflows(database, [{ workflowID: 'w', owner: OWNER, dueAt: FAR, awaited }]);

    const found = await findParked(database, ['w', 'other', 'nobody'], 2);

    expect([...found]).toEqual([['w', { dueAt: FAR, awaited: awaited.slice(0, 2) }]]);
  });

  test('the delay of a parked workflow cannot be changed', async () => {
    const { database } = await setup(dialect);
    await parkWorkflows(database, [{ ...parkOf('message'), awaited: [] }]);

    expect(await delayIfWaiting(database, 'w', { delayMs: 7000 })).toBe(false);

    const [row] = await findWorkflows(database, ['w']);
    expect(row).toMatchObject({ status: 'DELAYED', owner: OWNER, delayUntil: FAR });
  });

  test('a workflow that was woken can be delayed, and is not parked then', async () => {
    const { database } = await setup(dialect);
    await parkWorkflows(database, [parkOf('message')]);
    await database.run(arrivalOf('message'));

    expect(await delayIfWaiting(database, 'w', { untilMs: FAR + 1 })).toBe(true);

    const [row] = await findWorkflows(database, ['w']);
    expect(row).toMatchObject({ status: 'DELAYED', owner: null, delayUntil: FAR + 1 });
    expect(await takeBack(database, { workflowID: 'w', owner: OWNER })).toBe(false);
  });

  test('a debounced call does not change the input of a workflow that is parked, and takes its key', async () => {
    const { database } = await setup(dialect);
    const key = { queueName: 'q', deduplicationID: 'k' };
    const debounced = newWorkflow({ ...key, workflowID: 'd', owner: OWNER, isDebounced: true });
    await database.run(insertWorkflows([debounced]));
    await parkWorkflows(database, [{ workflowID: 'd', owner: OWNER, dueAt: FAR, awaited: [] }]);
    const call = { name: debounced.name, className: null, applicationName: 'test', periodMs: 5, inputs: 'new' };

    expect(await bounceIfDelayed(database, { ...key, ...call, serialization: 's' })).toBeUndefined();
    await releaseUnlessDelayed(database, { ...key, ...call, serialization: 's' });

    const [row] = await findWorkflows(database, ['d']);
    expect(row).toMatchObject({ inputs: debounced.inputs, delayUntil: FAR, deduplicationID: null });
  });

  test('a delayed workflow that has not started is not woken', async () => {
    const { database } = await setup(dialect);
    await parkWorkflows(database, [parkOf('message')]);
    await database.run(sql`UPDATE ${table('workflow_status')} SET owner_xid = NULL WHERE workflow_uuid = 'w'`);

    await database.run(arrivalOf('message'));

    expect(await statusOf(database)).toBe('DELAYED');
  });
});

/** The database, with transactions that stop before their statement of this number. */
function pausing(database: Database, number: number) {
  const reached = deferred<void>();
  const released = deferred<void>();
  const paused = Object.create(database, {
    transaction: {
      value: (body: (tx: Executor) => Promise<unknown>) =>
        database.transaction(async (tx) => {
          let count = 0;
          const pause = async (): Promise<void> => {
            count += 1;
            if (count !== number) return;
            reached.resolve();
            await released.promise;
          };
          const result = await body({
            dialect: tx.dialect,
            run: async (statement) => {
              await pause();
              return tx.run(statement);
            },
          });
          // A number after the last statement stops before the commit.
          for (; count < number;) await pause();
          return result;
        }),
    },
    read: { value: (statement: Sql) => database.read(statement) },
    run: { value: (statement: Sql) => database.run(statement) },
  }) as Database;
  return { paused, reached: reached.promise, release: () => released.resolve() };
}

onlyOn('postgres', (dialect) => {
  /** Whether a statement of this database waits for a lock. */
  async function isBlocked(database: Database): Promise<boolean> {
    const rows = await database.read(sql`
      SELECT 1 FROM pg_catalog.pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
    return rows.length > 0;
  }

  const points = kinds.flatMap((kind) => [1, 2, 3, 4, 5, 6, 7].map((number) => [kind, number] as const));

  test.each(points)('a %s that arrives when parking is at statement %i is not missed', async (kind, number) => {
    const { url, database } = await setup(dialect);
    const sender = await dialect.open(url);
    const { paused, reached, release } = pausing(database, number);
    const parking = parkWorkflows(paused, [parkOf(kind)]);
    await reached;

    let isSent = false;
    const sending = sender.run(arrivalOf(kind)).then(() => (isSent = true));
    await until(async () => isSent || (await isBlocked(sender)));
    release();
    const [verdicts] = await Promise.all([parking, sending]);

    const woken = { parked: 'ENQUEUED', refused: 'PENDING', lost: 'never' };
    expect(await statusOf(database)).toBe(woken[verdicts[0] as keyof typeof woken]);
  });

  test.each(kinds)('a %s waits for a commit that changes its receiver, and is no deadlock', async (kind) => {
    const { url, database } = await setup(dialect);
    const sender = await dialect.open(url);
    await parkWorkflows(database, [parkOf(kind)]);
    let isSent = false;
    let sending: Promise<unknown> | undefined;

    await database.transaction(async (tx) => {
      await tx.run(sql`SELECT 1 FROM ${table('workflow_status')} WHERE workflow_uuid = 'w' FOR NO KEY UPDATE`);
      sending = sender.run(arrivalOf(kind)).then(() => (isSent = true));
      await until(async () => isSent || (await isBlocked(sender)));
      await tx.run(sql`UPDATE ${table('workflow_status')} SET status = 'CANCELLED' WHERE workflow_uuid = 'w'`);
    });
    await sending;

    expect(await statusOf(database)).toBe('CANCELLED');
    expect(await hasParkedWaits(database)).toBe(false);
  });

  /** Two parked workflows, and a transaction that sends to them in the given order. */
  async function setupSenders() {
    const { url, database } = await setup(dialect);
    await database.run(insertWorkflows([newWorkflow({ workflowID: 'x', owner: OWNER })]));
    const ids = ['w', 'x'];
    const parks = ids.map((workflowID) => ({
      ...{ workflowID, owner: OWNER, dueAt: FAR },
      awaited: [{ kind: 'message', workflowID, topic: 't' } as const],
    }));
    expect(await parkWorkflows(database, parks)).toEqual(['parked', 'parked']);
    const send = async (order: readonly string[], between: () => Promise<void>) => {
      const sender = await dialect.open(url);
      await sender.transaction(async (tx) => {
        for (const destinationID of order) {
          await tx.run(insertMessages([{ message: newMessage({ destinationID, topic: 't' }) }]));
          await between();
        }
      });
    };
    const statuses = async () => {
      const rows = await findOwners(database, ids);
      return ids.map((id) => rows.get(id)?.status);
    };
    return { url, database, send, statuses };
  }

  test('transactions that send to the same parked workflows in different orders are no deadlock', async () => {
    const { send, statuses } = await setupSenders();
    let sent = 0;
    const both = async () => {
      sent += 1;
      const target = sent <= 2 ? 2 : 4;
      await until(() => sent >= target);
    };

    await Promise.all([send(['w', 'x'], both), send(['x', 'w'], both)]);

    expect(await statuses()).toEqual(['ENQUEUED', 'ENQUEUED']);
  });

  test('a transaction that has sent a message to a parked workflow keeps nobody from cancelling it', async () => {
    const { database, send, statuses } = await setupSenders();

    await send(['w'], async () => void (await cancelWorkflows(database, ['w'])));

    expect(await statuses()).toEqual(['CANCELLED', 'DELAYED']);
  });

  test('a commit does not wait for a parked workflow that stays locked, and wakes the others', async () => {
    const { url, database, send, statuses } = await setupSenders();
    const locker = await dialect.open(url);

    await locker.transaction(async (tx) => {
      await tx.run(sql`SELECT 1 FROM ${table('workflow_status')} WHERE workflow_uuid = 'w' FOR NO KEY UPDATE`);
      await send(['w', 'x'], () => Promise.resolve());
    });

    expect(await statuses()).toEqual(['DELAYED', 'ENQUEUED']);
    const missed = await findMissed(database, await listParkedWaits(database, undefined, 10));
    expect(await wakeParked(database, missed)).toHaveLength(1);
    expect(await statuses()).toEqual(['ENQUEUED', 'ENQUEUED']);
  });

  test.each(kinds)('a %s that is about to be committed keeps its receiver from parking', async (kind) => {
    const { url, database } = await setup(dialect);
    const sender = await dialect.open(url);

    const verdicts = await sender.transaction(async (tx) => {
      await tx.run(arrivalOf(kind));
      return parkWorkflows(database, [parkOf(kind)]);
    });

    expect(verdicts).toEqual(['refused']);
    expect(await statusOf(database)).toBe('PENDING');
  });
});
