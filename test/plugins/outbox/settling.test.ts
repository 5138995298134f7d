// Outcomes of leases, as they are written. A lease that was lost writes nothing, whatever else is written with it.
import pg from 'pg';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import type { Row } from '../../../src/plugins/transaction/driver.js';
import { until } from '../../crash/processes.js';
import { type Settlement, Settler } from '../../../src/plugins/outbox/consume/settling.js';
import { OutboxDatabase } from '../../../src/plugins/outbox/database.js';
import { toFailure } from '../../../src/plugins/outbox/dead-letters/failure.js';
import { makeOutboxTable } from '../../../src/plugins/outbox/schema/tables.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, pending, setOutbox, sourceOf } from './scene.js';
import { ALL_TABLES } from './tables.js';

afterAll(dropDatabase);

const LOST = '00000000-0000-4000-8000-000000000001';
const HELD = '00000000-0000-4000-8000-000000000002';

/** An outbox with messages under the lease HELD. */
async function setup(name: (typeof DIALECTS)[number][1], count: number) {
  const scene = await setOutbox(name);
  const database = new OutboxDatabase(sourceOf(scene));
  const tables = { table: makeOutboxTable(), dlqTable: ALL_TABLES.dlqTable };
  const settler = new Settler({ clock: systemClock, database, ...tables, leaseMs: 60_000 });
  onTestFinished(() => settler.close());
  const messages = Array.from({ length: count }, (_, body) => ({ body }));
  await scene.source.runTransaction(() => scene.outbox.publishAll('topic', messages), { name: 'publish' });
  await scene.query(`UPDATE outbox SET acquired_token = '${HELD}', acquired_at = created_at, deliveries_count = 1`);
  const ids = (await pending(scene)).map((row) => String(row['id']));
  const letters = () => scene.query('SELECT original_id, last_exception FROM outbox_dlq ORDER BY original_id');
  return { scene, settler, ids, letters };
}

const KINDS = ['done', 'retry', 'release', 'dead'] as const;

function settlement(kind: Settlement['kind'] = 'done', id: string, token: string): Settlement {
  const common = { id, token, delayMs: 0, startedAt: Date.now(), isAttempt: true };
  return { ...common, kind, reason: 'rejected', failure: toFailure(new Error('no')) };
}

describe.each(DIALECTS)('outcomes on %s', (_, name) => {
  test('of lost leases change nothing', async () => {
    const { scene, settler, ids, letters } = await setup(name, KINDS.length);
    const before = await pending(scene);

    const written = await Promise.all(ids.map((id, n) => settler.settle(settlement(KINDS[n], id, LOST))));

    expect(written).toEqual([false, false, false, false]);
    expect(await pending(scene)).toEqual(before);
    expect(await letters()).toEqual([]);
  });

  test('of several leases on a message are written apart, and only that of the present lease counts', async () => {
    const { settler, ids, letters } = await setup(name, KINDS.length ** 2);
    const pairs = KINDS.flatMap((lost) => KINDS.map((held) => ({ lost, held })));

    const written = await Promise.all(
      ids.flatMap((id, n) => {
        const [lost, held] = [settlement(pairs[n]?.lost, id, LOST), settlement(pairs[n]?.held, id, HELD)];
        return [lost, held, lost].map((one) => settler.settle(one));
      }),
    );

    expect(written).toEqual(pairs.flatMap(() => [false, true, false]));
    expect(await letters()).toHaveLength(KINDS.length);
  });

  test('are written although dead letters cannot be', async () => {
    const { scene, settler, ids, letters } = await setup(name, 20);
    await scene.query('ALTER TABLE outbox_dlq RENAME TO hidden');

    const written = await Promise.allSettled(
      ids.map((id, n) => settler.settle(settlement(KINDS[n % KINDS.length], id, HELD))),
    );
    await scene.query('ALTER TABLE hidden RENAME TO outbox_dlq');

    for (const [n, { status }] of written.entries()) {
      expect(status).toBe(KINDS[n % KINDS.length] === 'dead' ? 'rejected' : 'fulfilled');
    }
    // What is done is gone, and what failed for good waits for the end of its lease.
    const rows = await pending(scene);
    expect(rows).toHaveLength(15);
    expect(rows.filter((row) => row['acquired_token'] !== null)).toHaveLength(5);
    expect(await letters()).toEqual([]);
  });

  test('become dead letters with half of a surrogate pair in the error', async () => {
    const { settler, ids, letters } = await setup(name, 4);
    const half = '😀😀'.slice(0, 3);
    const named = Object.assign(new Error('x'), { name: `${'x'.repeat(254)}😀` });
    const errors = [new Error(`cannot send "${half}…"`), new Error('x'.repeat(9) + '😀'.repeat(6000)), named, half];

    const written = await Promise.all(
      ids.map((id, n) =>
        settler.settle({ ...settlement('dead', id, HELD), failure: toFailure(errors[n]) } as Settlement),
      ),
    );

    expect(written).toEqual([true, true, true, true]);
    expect(await letters()).toHaveLength(4);
  });
});

describe.runIf(DIALECTS.some(([dialect]) => dialect === 'postgres'))('a row that another session has locked', () => {
  /** Resolves when the row is locked. */
  async function lockRow(url: string, id: string) {
    const client = new pg.Client(url);
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('BEGIN');
    await client.query(`SELECT id FROM outbox WHERE id = ${id} FOR UPDATE`);
    return { release: () => client.query('ROLLBACK') };
  }

  test('does not keep other outcomes from being written, and its own is written later', async () => {
    const { scene, settler, ids, letters } = await setup('node-postgres', KINDS.length * 2);
    const settle = (n: number) => settler.settle(settlement(KINDS[n % KINDS.length], ids[n] ?? '', HELD));
    for (const [blocked, kind] of KINDS.entries()) {
      const row = await lockRow(scene.scene.url, ids[blocked] ?? '');

      const waiting = settle(blocked);
      expect(await settle(blocked + KINDS.length), kind).toBe(true);
      await row.release();

      expect(await waiting, kind).toBe(true);
    }
    expect(await letters()).toHaveLength(2);
  });

  test('does not keep the other leases of its fetch from being renewed', async () => {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (entry: unknown) => void warnings.push(String(entry)) };
    const scene = await setOutbox('node-postgres', { isLaunched: false, config: { logger } });
    const finish = deferred<void>();
    const calls: unknown[] = [];
    scene.outbox.on('topic', (body) => (calls.push(body), finish.promise), { workers: 3, lease: 6000 });
    await scene.DBOS.launch();
    const messages = [1, 2, 3].map((body) => ({ body }));
    await scene.source.runTransaction(() => scene.outbox.publishAll('topic', messages), { name: 'publish' });
    await until('all are running', () => calls.length === 3);
    const before = await pending(scene);
    const row = await lockRow(scene.scene.url, String(before[0]?.['id']));

    const renewedAt = (rows: readonly Row[], n: number) => Number(rows[n]?.['acquired_at']);
    await until('the others are renewed', async () => {
      const rows = await pending(scene);
      return [1, 2].every((n) => renewedAt(rows, n) > renewedAt(before, n));
    });
    expect(renewedAt(await pending(scene), 0)).toBe(renewedAt(before, 0));
    await row.release();
    await until('it is renewed, too', async () => renewedAt(await pending(scene), 0) > renewedAt(before, 0));
    finish.resolve();
    await until('the outbox is empty', async () => (await pending(scene)).length === 0);

    expect(calls).toHaveLength(3);
    expect(warnings).toEqual([]);
  });
});
