// Finds out, before the first statement, what the server lacks of that which Everstep uses where it can: servers that only
// speak Postgres's protocol, proxies and roles differ in it. Also whether a pooler stands between this process and Postgres,
// and in which mode. In transaction mode a session may have another server process for each commit, so nothing that lasts
// for a session works: settings, prepared statements, LISTEN, session locks.
import pg from 'pg';
import { closePromptly, PROMPT_MS, within } from './silence.js';
import { TIMELINE } from './timelines.js';

interface Feature {
  /** Statements that leave nothing behind if they are rolled back. */
  readonly probe: string;
  /** What Everstep does without it. */
  readonly without: string;
}

export const SERVER_FEATURES = {
  'session settings': {
    probe: `SELECT set_config('enable_seqscan', 'off', TRUE), set_config('everstep.quiet', 'on', TRUE)`,
    without:
      'The planner may choose plans that read whole tables, the statement timeout of the role applies, and the history ' +
      'lacks reasons and actors.',
  },
  'advisory locks': {
    probe: 'SELECT pg_try_advisory_xact_lock_shared(0)',
    without:
      'Claims of queues with limits take turns by a row lock, the lease alone says which process is alive, and a commit ' +
      'that reaches the server late is not refused.',
  },
  notifications: {
    probe: `LISTEN everstep_probe; SELECT pg_notify('everstep_probe', '')`,
    without: 'Waits poll, and the lease alone says which process is alive.',
  },
  'SKIP LOCKED': {
    probe: 'SELECT p.one FROM (SELECT 1 AS one) AS p FOR NO KEY UPDATE OF p SKIP LOCKED',
    without: 'Claims wait for those of other engines, one after the other.',
  },
  timelines: {
    probe: `SELECT ${TIMELINE}`,
    without: 'A failover is not noticed: runs continue with what they remember, and a former primary is written to.',
  },
} as const satisfies Readonly<Record<string, Feature>>;

export type ServerFeature = keyof typeof SERVER_FEATURES;

/** A syntax error, something unknown, a missing privilege, or a feature that is not supported. */
const REFUSED = /^(42|0A)/;

/** What the server behind the connection lacks. */
export async function findLacking(client: pg.Client): Promise<ReadonlySet<ServerFeature>> {
  const all = Object.values(SERVER_FEATURES).map(({ probe }) => probe);
  // All at once: a server that has everything costs one round trip.
  if (!(await isRefused(client, all.join('; ')))) return new Set();
  const lacking = new Set<ServerFeature>();
  for (const [name, { probe }] of Object.entries(SERVER_FEATURES)) {
    if (await isRefused(client, probe)) lacking.add(name as ServerFeature);
  }
  return lacking;
}

/** Other errors of the server, such as a standby's, say nothing about the feature. Throws if the connection is lost. */
async function isRefused(client: pg.Client, text: string): Promise<boolean> {
  try {
    await within(PROMPT_MS, client, client.query(`BEGIN; ${text}; ROLLBACK`));
    return false;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    await within(PROMPT_MS, client, client.query('ROLLBACK'));
    return REFUSED.test(error.code ?? '');
  }
}

/** `session`: a pooler that keeps a server process for each connection. */
export type Pooling = 'none' | 'session' | 'transaction';

/** How often two connections are compared. Others may use the pooler meanwhile, and hide its mode from a few looks. */
const LOOKS = 10;

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
