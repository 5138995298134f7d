// Many waiters beside a busy neighbour on a SQLite file: only those are looked up whose rows may have changed.
import { expect, onTestFinished, test } from 'vitest';
import { RemoteClock } from '../../src/kernel/base/remote-clock.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { RowWatchers } from '../../src/operator/row-watchers.js';
import { nowMs, render, sql, type Sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';
import { insertWorkflows } from '../../src/run/rows/workflows.js';
import { onlyOn } from '../rig/dialects.js';
import { ManualClock, until } from '../rig/manual-clock.js';
import { localBus } from '../rig/operators.js';
import { newWorkflow } from '../rig/records.js';

type Watchers = Pick<RowWatchers, 'outcomes' | 'messages' | 'events' | 'streams'>;
type WaitFor = (watchers: Watchers, workflowID: string, onEmpty: () => void) => Promise<unknown>;

const QUIET = Array.from({ length: 300 }, (_, n) => `quiet-${n}`);

const KINDS: readonly (readonly [name: string, wait: WaitFor, change: Sql])[] = [
  [
    'messages',
    ({ messages }, workflowID, onEmpty) => messages.wait({ workflowID, topic: 'k' }, { onEmpty }),
    sql`INSERT INTO ${table('notifications')} (destination_uuid, topic, message) VALUES ('loud', 'k', '1')`,
  ],
  [
    'events',
    ({ events }, workflowID, onEmpty) => events.wait({ workflowID, key: 'k' }, { onEmpty }),
    sql`INSERT INTO ${table('workflow_events')} (workflow_uuid, key, value) VALUES ('loud', 'k', '1')`,
  ],
  [
    'streams',
    ({ streams }, workflowID, onEmpty) => streams.wait({ workflowID, key: 'k', offset: 0 }, { onEmpty }),
    sql`INSERT INTO ${table('streams')} (workflow_uuid, key, value, "offset") VALUES ('loud', 'k', '1', 0)`,
  ],
  [
    'outcomes',
    ({ outcomes }, workflowID, onEmpty) => outcomes.wait({ workflowID }, { onEmpty }),
    sql`UPDATE ${table('workflow_status')} SET status = 'SUCCESS', completed_at = ${nowMs} WHERE workflow_uuid = 'loud'`,
  ],
];

onlyOn('sqlite', (dialect) => {
  async function setup() {
    const url = await dialect.createURL();
    const [own, neighbour] = [await dialect.open(url), await dialect.open(url)];
    await neighbour.run(insertWorkflows(['loud', ...QUIET].map((workflowID) => newWorkflow({ workflowID }))));
    const reads: string[] = [];
    const database: Database = Object.assign(Object.create(own) as Database, {
      dialect: own.dialect,
      read(statement: Sql) {
        reads.push(JSON.stringify(render(statement, own.dialect).values));
        return own.read(statement);
      },
    });
    // It stands still, so that no poll helps.
    const clock = new ManualClock();
    const bus = localBus();
    const watchers = new RowWatchers({
      clock,
      databaseClock: new RemoteClock(clock),
      logger: silentLogger,
      database,
      bus,
      hasPush: true,
      retrying: (find) => find(),
      whileWaiting: (begin) => begin(),
      isRunning: () => false,
    });
    onTestFinished(() => watchers.stop(new Error('The test has ended.')));
    return { bus, neighbour, watchers, reads };
  }

  test.each(KINDS)('a neighbour wakes the waiter of its row, and no other: %s', async (_, wait, change) => {
    const { bus, neighbour, watchers, reads } = await setup();
    let empty = 0;
    const begin = (workflowID: string) => wait(watchers, workflowID, () => (empty += 1));
    for (const workflowID of QUIET) begin(workflowID).catch(() => {});
    const awaited = begin('loud');
    await until(() => empty === QUIET.length + 1);
    reads.length = 0;
    // The first look finds out where to begin.
    bus.wakeAll();
    await until(() => reads.some((read) => read.includes('quiet-7')));
    reads.length = 0;

    await neighbour.run(change);
    bus.wakeAll();

    expect(await awaited).toBeDefined();
    expect(reads.filter((read) => read.includes('quiet-7'))).toEqual([]);
  });
});
