// Sessions that the server ends at an awkward moment.
import { connect, createServer } from 'node:net';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { sql } from '../../../src/kernel/sql/sql.js';
import { onlyOn } from '../../rig/dialects.js';
import { fatal } from '../../rig/pooler.js';

const READY = Buffer.from('5a0000000549', 'hex');

const TERMINATION = fatal('57P01', 'terminating connection due to administrator command');

/** A proxy that ends the first `count` sessions in the same packet that says that they are ready. */
async function startEndingProxy(targetURL: string, count: number): Promise<string> {
  const target = new URL(targetURL);
  let left = count;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    const close = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.on('error', close).on('close', close);
    client.on('data', (chunk) => upstream.write(chunk));
    upstream.on('data', (chunk) => {
      if (left === 0 || !chunk.subarray(-READY.length).equals(READY)) return client.write(chunk);
      left -= 1;
      client.end(Buffer.concat([chunk, TERMINATION]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = new URL(targetURL);
  url.port = String((server.address() as { port: number }).port);
  return url.href;
}

onlyOn('postgres', (dialect) => {
  test.each(['our pool', 'a pool of the caller', 'no pool'] as const)(
    'a session that is ended in the packet that says it is ready does not end the process (%s)',
    async (kind) => {
      const url = await startEndingProxy(await dialect.createURL(), 1);
      const shared = new pg.Pool({ connectionString: url });
      shared.on('error', () => {});
      onTestFinished(() => shared.end());
      const pool = kind === 'our pool' ? undefined : kind === 'no pool' ? 'none' : shared;
      const database = await dialect.open(url, { pool });

      await expect(database.read(sql`SELECT 1`)).rejects.toThrow(/Cannot reach Postgres/);

      expect(await database.read(sql`SELECT 1 AS one`)).toEqual([{ one: 1 }]);
    },
  );
});
