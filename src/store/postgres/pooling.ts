// Finds out whether a pooler stands between this process and Postgres, and in which mode. In transaction mode a session may
// have another server process for each commit, so nothing that lasts for a session works: settings, prepared statements,
// LISTEN, session locks.
import type pg from 'pg';
import { closePromptly, PROMPT_MS, within } from './silence.js';

/** `session`: a pooler that keeps a server process for each connection. */
export type Pooling = 'none' | 'session' | 'transaction';

/** How often two connections are compared. Others may use the pooler meanwhile, and hide its mode. */
const LOOKS = 3;

/** What `client`, which is connected, goes through. `config` is for a second connection, needed only behind a pooler. */
export async function findPooling(client: pg.Client, config: pg.ClientConfig): Promise<Pooling> {
  // A pooler makes up the process ID that it announces, because clients cancel statements by it.
  const announced = (client as pg.Client & { processID?: number | null }).processID;
  const backend = await backendOf(client);
  if (announced === backend) return 'none';
  // Of its own class, which knows the host that it has reached.
  const other = new (client.constructor as typeof pg.Client)(config);
  // The statements report a broken connection.
  other.on('error', () => {});
  try {
    await other.connect();
    for (let look = 0; look < LOOKS; look += 1) {
      // While the other holds a server process, a session of its own would still have its first one.
      await ask(other, 'BEGIN');
      if ((await backendOf(other)) === backend || (await backendOf(client)) !== backend) return 'transaction';
      await ask(other, 'COMMIT');
    }
    return 'session';
  } catch {
    // The pool may be exhausted. The mode that works with any pooler is the safe answer.
    return 'transaction';
  } finally {
    await closePromptly(other);
  }
}

async function backendOf(client: pg.Client): Promise<number | undefined> {
  const { rows } = await ask(client, 'SELECT pg_backend_pid() AS backend');
  return (rows as { backend: number }[])[0]?.backend;
}

function ask(client: pg.Client, text: string): Promise<pg.QueryResult> {
  return within(PROMPT_MS, client, client.query(text));
}
