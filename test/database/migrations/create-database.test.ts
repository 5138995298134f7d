// Creating the database that a URL names.
import { expect, it, onTestFinished } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { createPostgresDatabase } from '../../../src/database/migrations/create-database.js';
import { migrate } from '../../../src/database/migrations/migrate.js';
import { onlyOn } from '../../rig/dialects.js';
import { connect, createRole, LATEST } from './setup.js';

const logger = silentLogger;

onlyOn('postgres', (dialect) => {
  /** The URL of a database that is not there; dropped at the end if the test creates it. */
  async function missing(name = `missing "${newID()}" Näme`): Promise<string> {
    const url = await dialect.createURL({ isMigrated: false });
    const admin = await connect(url);
    onTestFinished(async () => {
      await admin.query(`DROP DATABASE IF EXISTS "${name.replaceAll('"', '""')}" WITH (FORCE)`);
    });
    const missingURL = new URL(url);
    missingURL.pathname = `/${encodeURIComponent(name)}`;
    return missingURL.toString();
  }

  it('a missing database is created, whatever its name, and then is there', async () => {
    const url = await missing();

    expect(await createPostgresDatabase(url, { logger })).toBe(true);
    expect(await createPostgresDatabase(url, { logger })).toBe(false);

    const database = await dialect.open(url);
    expect(await migrate(database, { logger })).toEqual({ from: 0, to: LATEST });
    await database.close();
  });

  it('ten processes that miss the same database create it once', async () => {
    const url = await missing();

    const created = await Promise.all(Array.from({ length: 10 }, () => createPostgresDatabase(url, { logger })));

    expect(created.filter((isCreated) => isCreated)).toHaveLength(1);
  });

  it('an existing database needs neither rights nor a maintenance database', async () => {
    const { roleURL } = await createRole(await dialect.createURL({ isMigrated: false }));

    expect(await createPostgresDatabase(roleURL, { logger })).toBe(false);
  });

  it('a role that may not create databases learns what to do', async () => {
    const { roleURL } = await createRole(await dialect.createURL({ isMigrated: false }));
    const url = new URL(roleURL);
    url.pathname = '/not_there';

    const creation = createPostgresDatabase(url.toString(), { logger });

    await expect(creation).rejects.toMatchObject({
      code: 'DATABASE_ACCESS',
      message: expect.stringMatching(
        /"not_there" does not exist at .* and could not be created.*permission denied.*CREATEDB/s,
      ),
    });
    await expect(creation).rejects.not.toThrow(/secret/);
  });

  it('a server that is not there is reported as such', async () => {
    const creation = createPostgresDatabase('postgresql://u@127.0.0.1:1/db', { logger });

    await expect(creation).rejects.toMatchObject({ code: 'DATABASE_UNAVAILABLE' });
  });
});
