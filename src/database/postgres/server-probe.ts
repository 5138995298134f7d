// Finds out, before the first statement, what the server lacks of that which Everstep uses where it can: servers that only
// speak Postgres's protocol, proxies and roles differ in it. Also whether a pooler stands between this process and Postgres,
// and in which mode. In transaction mode a session may have another server process for each commit, so nothing that lasts
// for a session works: settings, prepared statements, LISTEN, session locks.
import pg from 'pg';
import { type PgSession, type SessionConfig, withSession } from './pg-session.js';
import { lacksStatement } from './postgres-errors.js';
import { CLUSTER, TIMELINE } from './timelines.js';

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
  'system identifiers': {
    probe: `SELECT ${CLUSTER}`,
    without: 'After a move to another cluster whose timeline is lower, engines have to be restarted.',
  },
} as const satisfies Readonly<Record<string, Feature>>;

export type ServerFeature = keyof typeof SERVER_FEATURES;

/** What the server behind the connection lacks. */
export async function findLacking(session: PgSession): Promise<ReadonlySet<ServerFeature>> {
  const all = Object.values(SERVER_FEATURES).map(({ probe }) => probe);
  // All at once: a server that has everything costs one round trip.
  if (!(await isRefused(session, all.join('; ')))) return new Set();
  const lacking = new Set<ServerFeature>();
  for (const [name, { probe }] of Object.entries(SERVER_FEATURES)) {
    if (await isRefused(session, probe)) lacking.add(name as ServerFeature);
  }
  return lacking;
}

/** Other errors of the server, such as a standby's, say nothing about the feature. Throws if the connection is lost. */
async function isRefused(session: PgSession, text: string): Promise<boolean> {
  try {
    await session.ask(`BEGIN; ${text}; ROLLBACK`);
    return false;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    await session.ask('ROLLBACK');
    return lacksStatement(error);
  }
}

/** `session`: a pooler that keeps a server process for each connection. */
export type Pooling = 'none' | 'session' | 'transaction';

/** How often two connections are compared. Others may use the pooler meanwhile, and hide its mode from a few looks. */
const LOOKS = 10;

/** What `session`, which is connected, goes through. `config` is for a second connection, needed only behind a pooler. */
export async function findPooling(session: PgSession, config: SessionConfig): Promise<Pooling> {
  // A pooler makes up the process ID that it announces, because clients cancel statements by it.
  const announced = (session as PgSession & { processID?: number | null }).processID;
  const backend = await backendOf(session);
  if (announced === backend) return 'none';
  try {
    return await withSession(config, async (other) => {
      for (let look = 0; look < LOOKS; look += 1) {
        // While the other holds a server process, a session of its own would still have its first one.
        await other.ask('BEGIN');
        if ((await backendOf(other)) === backend || (await backendOf(session)) !== backend) return 'transaction';
        await other.ask('COMMIT');
      }
      return 'session';
    });
  } catch {
    // The pool may be exhausted. The mode that works with any pooler is the safe answer.
    return 'transaction';
  }
}

async function backendOf(session: PgSession): Promise<number | undefined> {
  const { rows } = await session.ask<{ backend: number }>('SELECT pg_backend_pid() AS backend');
  return rows[0]?.backend;
}
