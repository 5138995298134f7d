// Creates the database of a Postgres URL if it is missing. Usually it exists, which one connection attempt shows; only
// otherwise are a maintenance database and the privilege to create one needed.
import { type Clock, sleep, systemClock } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { DatabaseAccessError } from '../../kernel/errors/errors.js';
import type { Hosts } from '../postgres/hosts.js';
import { type PgSession, withSession } from '../postgres/pg-session.js';
import { quoteIdentifier } from '../../kernel/sql/sql.js';
import { poolConfig } from '../postgres/postgres-config.js';
import { sqlState, translatePostgresError } from '../postgres/postgres-errors.js';
import { describePostgresURL, editPostgresURL, parsePostgresURL } from '../postgres/postgres-url.js';

export interface CreateDatabaseOptions {
  /** Those of the URL, if it has several. */
  readonly hosts?: Hosts | undefined;
  readonly logger: DLogger;
  readonly clock?: Clock;
}

/** Databases that exist on every server and usually accept any role. */
const MAINTENANCE_DATABASES = ['postgres', 'template1'];
const MISSING_DATABASE = '3D000';
/** Another process created it at the same time. */
const LOST_RACE_STATES = new Set(['42P04', '23505']);
/** Another process is copying the template. */
const TEMPLATE_BUSY = '55006';
const ATTEMPTS_MAX = 20;
const RETRY_MS = 100;

/** Creates the database if it is missing. Returns whether it did; else `onFound` gets the connection that has found it. */
export async function createPostgresDatabase(
  url: string,
  options: CreateDatabaseOptions,
  onFound: (session: PgSession) => Promise<void> = async () => {},
): Promise<boolean> {
  const where = describePostgresURL(url);
  try {
    await withSession(poolConfig({ url, hosts: options.hosts }), onFound);
    return false;
  } catch (error) {
    if (sqlState(error) !== MISSING_DATABASE) throw translatePostgresError(error, 'connect', where);
  }
  const name = decodeURIComponent(parsePostgresURL(url).pathname.slice(1));
  try {
    const isCreated = await onMaintenanceDatabase(url, options.hosts, (session) =>
      create(session, name, options.clock ?? systemClock),
    );
    if (isCreated) options.logger.info(`Created database ${quoteIdentifier(name)} at ${where}.`);
    return isCreated;
  } catch (error) {
    throw new DatabaseAccessError(
      `Database ${quoteIdentifier(name)} does not exist at ${where} and could not be created: ` +
        `${(error as Error).message}. Create it by hand, or use a role with CREATEDB that may connect to "postgres".`,
      { cause: error },
    );
  }
}

async function create(session: PgSession, name: string, clock: Clock): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await session.query(`CREATE DATABASE ${quoteIdentifier(name)}`);
      return true;
    } catch (error) {
      const state = sqlState(error) ?? '';
      if (LOST_RACE_STATES.has(state)) return false;
      if (state !== TEMPLATE_BUSY || attempt === ATTEMPTS_MAX) throw error;
      await sleep(clock, RETRY_MS);
    }
  }
}

/** Runs `body` on the first maintenance database that accepts the connection. */
async function onMaintenanceDatabase<T>(
  url: string,
  hosts: Hosts | undefined,
  body: (session: PgSession) => Promise<T>,
): Promise<T> {
  let refusal: unknown;
  for (const name of MAINTENANCE_DATABASES) {
    const maintenanceURL = editPostgresURL(url, (edited) => {
      edited.pathname = `/${name}`;
    });
    let isConnected = false;
    try {
      return await withSession(poolConfig({ url: maintenanceURL, hosts }), (session) => {
        isConnected = true;
        return body(session);
      });
    } catch (error) {
      if (isConnected) throw error;
      refusal ??= error;
    }
  }
  throw refusal;
}
