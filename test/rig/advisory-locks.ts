// A server without advisory locks, as some are that speak Postgres's protocol: their functions are missing.
import pg from 'pg';

export async function removeAdvisoryLocks(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(`
      DO $$
      DECLARE taken regprocedure;
      BEGIN
        FOR taken IN SELECT p.oid FROM pg_proc AS p WHERE p.proname LIKE '%advisory%' LOOP
          EXECUTE format('ALTER FUNCTION %s RENAME TO taken_%s', taken, md5(taken::text));
        END LOOP;
      END $$`);
  } finally {
    await client.end();
  }
}
