// Asks the process that runs the tests for the Postgres server that they share.
import pg from 'pg';
import { inject } from 'vitest';

let url: Promise<string> | undefined;

/** URL of the server's maintenance database. The first call of the test run starts the server. */
export function postgresURL(): Promise<string> {
  return (url ??= request());
}

/** The server's major version. */
export async function postgresVersion(): Promise<number> {
  const client = new pg.Client(await postgresURL());
  await client.connect();
  const { rows } = await client.query<{ version: number }>(
    `SELECT current_setting('server_version_num')::int AS version`,
  );
  await client.end();
  return Math.floor((rows[0]?.version ?? 0) / 10_000);
}

/** The URL through PgBouncer, if `POOLER` asks for it: whole suites can be run through one by hand. */
export async function pooledIfWanted(url: string): Promise<string> {
  if (!process.env['POOLER']) return url;
  const pooled = new URL(url);
  pooled.host = new URL(await request('/pooler')).host;
  return pooled.toString();
}

async function request(path = ''): Promise<string> {
  const response = await fetch(inject('postgresRequestURL') + path);
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}
