// Statements that cannot be sent: the caller learns it, and the connection serves the others.
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { sql, type Value } from '../../../src/kernel/sql/sql.js';
import { onlyOn } from '../../rig/dialects.js';

const backend = sql`SELECT pg_backend_pid() AS backend`;

onlyOn('postgres', (dialect) => {
  test.each([
    ['an object', {}],
    ['an object that has no text', JSON.parse('{"toString": 1}')],
  ])('a value that cannot be converted does not touch the connection: %s', async (_, value) => {
    const database = await dialect.create({ poolSize: 1 });
    const before = await database.read(backend);

    const sent = database.commit([sql`SELECT 1`, sql`SELECT ${value as Value}::text`]);

    await expect(sent).rejects.toThrow();
    expect(await database.read(backend)).toEqual(before);
  });

  test('a connection to which a request was written in part is replaced at once', async () => {
    const pool = new pg.Pool({ connectionString: await dialect.createURL(), max: 1 });
    onTestFinished(() => pool.end());
    let isFailing = false;
    pool.on('connect', (client) => {
      const { connection } = client as unknown as { connection: { execute(message: unknown): void } };
      const execute = connection.execute.bind(connection);
      connection.execute = (message) => {
        if (isFailing) throw new Error('on purpose');
        execute(message);
      };
    });
    const database = await dialect.open('postgresql://unused@localhost/unused', { pool });
    const before = await database.read(backend);

    isFailing = true;
    await expect(database.read(sql`SELECT 1`)).rejects.toThrow('on purpose');
    isFailing = false;

    const after = await database.read(backend);
    expect(after).not.toEqual(before);
    expect(await database.read(backend)).toEqual(after);
  });
});
