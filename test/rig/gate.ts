// A proxy in front of Postgres that lets connections in, or fails them as servers and networks do, and counts them.
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { fatal, parametersOf, startupPacket } from './pooler.js';

/**
 * `read-only`: as a standby. `refused`: by the server, which leaves the closing to the client. `silent`: there is no answer.
 * `cut`: in the middle of the first statement. `away`: there is no server.
 */
export type Treatment = 'let in' | 'read-only' | 'refused' | 'silent' | 'cut' | 'away';

export interface Gate {
  /** Host and port. */
  readonly host: string;
  /** For connections from now on. */
  treat(treatment: Treatment): void;
  /** Ends the connections that were let in. */
  cutAll(): void;
  /** How many connections there are. */
  readonly open: number;
  /** How many there were at once. */
  readonly most: number;
  /** How many there were since the last change of treatment. */
  readonly made: number;
}

export async function startGate(targetURL: string, first: Treatment = 'let in'): Promise<Gate> {
  const target = new URL(targetURL);
  const clients = new Set<Socket>();
  let treatment = first;
  let made = 0;
  let most = 0;
  const server = createServer((client) => {
    made += 1;
    clients.add(client);
    most = Math.max(most, clients.size);
    client.on('error', () => {});
    client.on('close', () => clients.delete(client));
    if (treatment === 'away') return client.destroy();
    if (treatment === 'silent') return client.resume();
    if (treatment === 'refused') {
      client.once('data', () => client.resume().write(fatal('53300', 'sorry, too many clients already')));
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    upstream.on('error', () => {});
    upstream.on('close', () => client.destroy());
    client.on('close', () => upstream.destroy());
    const isReadOnly = treatment === 'read-only';
    const isCut = treatment === 'cut';
    client.once('data', (startup) => {
      const parameters = parametersOf(startup);
      if (isReadOnly) parameters.set('options', '-c default_transaction_read_only=on');
      upstream.write(startupPacket(parameters));
      client.on('data', (chunk) => (isCut ? client.end() : upstream.write(chunk)));
    });
    upstream.on('data', (chunk) => client.write(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cutAll = (): void => {
    for (const client of clients) client.destroy();
  };
  onTestFinished(async () => {
    cutAll();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    host: `127.0.0.1:${(server.address() as { port: number }).port}`,
    treat(next) {
      treatment = next;
      made = 0;
    },
    cutAll,
    get open() {
      return clients.size;
    },
    get most() {
      return most;
    },
    get made() {
      return made;
    },
  };
}
