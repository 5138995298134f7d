// A process that applies retention with an archive, and is killed at the point that its argument names.
import { silentLogger } from '../../src/kernel/base/log.js';
import { DBOSClient } from '../../src/faces/client/client.js';
import { fileArchive } from '../../src/features/retention/file-archive.js';

export const RETENTION_POINTS = [
  'before the write',
  'after the write',
  'before the delete',
  'after the delete',
] as const;
export type RetentionPoint = (typeof RETENTION_POINTS)[number];

export interface RetentionKill {
  readonly url: string;
  readonly folder: string;
  readonly point: RetentionPoint;
}

async function main({ url, folder, point }: RetentionKill): Promise<void> {
  const dieAt = (reached: RetentionPoint): void => {
    if (reached === point) process.kill(process.pid, 'SIGKILL');
  };
  const files = fileArchive(folder);
  const archive = {
    async write(name: string, content: Uint8Array): Promise<void> {
      dieAt('before the write');
      await files.write(name, content);
      dieAt('after the write');
    },
    async read(name: string): Promise<Uint8Array | undefined> {
      const content = await files.read(name);
      dieAt('before the delete');
      return content;
    },
  };
  const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger, archive });
  await client.applyRetention({ completed: 0 }, { restFactor: 0, onProgress: () => dieAt('after the delete') });
  await client.destroy();
}

const [, , given] = process.argv;
// A test imports the points from here.
if (given?.startsWith('{')) {
  main(JSON.parse(given) as RetentionKill).catch((error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = 1;
  });
}
