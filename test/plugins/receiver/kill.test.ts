// A process that is killed in the middle of a batch, after the commit, or after the acknowledgement.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { type BrokerServer, hasPrograms, startRedis } from './servers.js';

const MESSAGES = 60;

describe.skipIf(!hasPrograms('redis-server'))('a receiver that is killed', () => {
  let server: BrokerServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.remove());

  const launch = (settings: object) => {
    const script = fileURLToPath(new URL('./receiving-process.ts', import.meta.url));
    const process_ = spawn(process.execPath, ['--import', 'tsx', script, JSON.stringify(settings)], {
      stdio: 'inherit',
    });
    const hasEnded = once(process_, 'exit');
    onTestFinished(async () => {
      process_.kill('SIGKILL');
      await hasEnded;
    });
    return { hasEnded };
  };

  forEachDialect((dialect) => {
    test('at any point leaves one workflow for each message to those after it', async () => {
      const url = await dialect.createURL();
      const stream = `killed-${dialect.name}`;
      const client = new Redis(server.port, '127.0.0.1');
      onTestFinished(() => client.disconnect());
      for (let n = 0; n < MESSAGES; n += 1) await client.xadd(stream, '*', 'n', n);
      const settings = { url, port: server.port, stream };

      for (const dieAt of ['decoding', 'acknowledging', 'acknowledged'] as const) {
        const [, signal] = (await launch({ ...settings, dieAt }).hasEnded) as [number | null, string | null];
        expect(signal).toBe('SIGKILL');
      }
      launch(settings);
      const database = await dialect.open(url);
      const count = async (): Promise<{ all: number; done: number }> => {
        const [row] = await database.read(sql`
          SELECT COUNT(*) AS n, SUM(CASE WHEN w.status = 'SUCCESS' THEN 1 ELSE 0 END) AS done
          FROM ${table('workflow_status')} AS w`);
        return { all: Number(row?.['n']), done: Number(row?.['done']) };
      };
      const pending = async (): Promise<number> => ((await client.xpending(stream, 'everstep-work')) as [number])[0];
      while ((await count()).done < MESSAGES || (await pending()) > 0) {
        await new Promise((resolve) => setTimeout(resolve, 50));
      }

      expect(await count()).toEqual({ all: MESSAGES, done: MESSAGES });
    });
  });
});
