// Tests that leave something behind on purpose. They are run by leaks.test.ts, which expects them to fail.
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { afterAll, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { Service } from '../../../src/kernel/base/service.js';
import { sleep } from '../../../src/kernel/base/clock.js';
import { sql } from '../../../src/kernel/sql/sql.js';
import { PostgresDatabase } from '../../../src/database/postgres/postgres-database.js';
import { SqliteDatabase } from '../../../src/database/sqlite/sqlite-database.js';

const held: { database?: SqliteDatabase } = {};
const folder = mkdtempSync(join(tmpdir(), 'everstep-leaky-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('tidy', async () => {
  const database = await SqliteDatabase.open({ path: join(folder, `${newID()}.sqlite`) });
  await sleep(systemClock, 1);
  await database.close();
});

test('leaves a timer', () => {
  systemClock.after(60_000, () => {});
});

test('leaves a service', () => {
  new Service((signal) => sleep(systemClock, 60_000, signal), silentLogger.error.bind(silentLogger)).start();
});

test('leaves a file', async () => {
  // Held, so that the garbage collector does not tidy up.
  held.database = await SqliteDatabase.open({ path: join(folder, `${newID()}.sqlite`) });
});

test.skipIf(!process.env['LEAKY_POSTGRES_URL'])('leaves a connection', async () => {
  const database = new PostgresDatabase({ url: process.env['LEAKY_POSTGRES_URL'] ?? '' });
  await database.read(sql`SELECT 1`);
});
