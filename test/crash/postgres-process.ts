// A Postgres server that can be crashed and started again. Lines on standard input are commands, each answered by a line on
// standard output. When the input closes, server and folder are removed.
import { createInterface } from 'node:readline';
import { Cluster, freePort, type Server } from './cluster.js';

export type ServerCommand = 'crash' | 'start';

const cluster = new Cluster();
let server: Server | undefined;

async function main(): Promise<void> {
  cluster.create('data');
  const port = await freePort();
  server = await cluster.start('data', port);
  process.stdout.write(`postgresql://postgres:postgres@127.0.0.1:${port}/crash\n`);
  for await (const line of createInterface({ input: process.stdin })) {
    // As `pg_ctl stop -m immediate` does: no checkpoint, recovery at the next start.
    if ((line as ServerCommand) === 'crash') await server.end('SIGQUIT');
    else server = await cluster.start('data', port);
    process.stdout.write(`${line}\n`);
  }
}

void main().finally(async () => {
  await server?.end('SIGINT');
  cluster.remove();
});
