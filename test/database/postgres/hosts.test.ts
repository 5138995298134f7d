import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient } from '../../../src/index.js';
import { chooseSystemURL } from '../../../src/database/config/system-url.js';
import { Hosts } from '../../../src/database/postgres/hosts.js';
import { onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { urlsOf, describePostgresURL, editPostgresURL } from '../../../src/database/postgres/postgres-url.js';

const TWO = 'postgresql://user:p%40ss@one:5432,two:5433/db?sslmode=require';

describe('a URL with several hosts', () => {
  test('is split into URLs of one host each', () => {
    expect(urlsOf(TWO)).toEqual([
      'postgresql://user:p%40ss@one:5432/db?sslmode=require',
      'postgresql://user:p%40ss@two:5433/db?sslmode=require',
    ]);
    expect(urlsOf('postgres://one,two/db')).toEqual(['postgres://one/db', 'postgres://two/db']);
    expect(urlsOf('postgresql://u:a,b@one/db')).toEqual(['postgresql://u:a,b@one/db']);
  });

  test('keeps its hosts when its database is changed, and is described without its password', () => {
    const edited = editPostgresURL(TWO, (url) => {
      url.pathname = '/other';
    });

    expect(edited).toBe('postgresql://user:p%40ss@one:5432,two:5433/other?sslmode=require');
    expect(describePostgresURL(TWO)).toBe('one:5432,two:5433/db');
    expect(chooseSystemURL({ systemURL: undefined, applicationURL: TWO, name: 'app' })).toBe(
      'postgresql://user:p%40ss@one:5432,two:5433/db_dbos_sys?sslmode=require',
    );
  });

  test('is refused if it asks for a server that cannot be written to', () => {
    expect(() => Hosts.of(`${TWO}&target_session_attrs=standby`)).toThrow('target_session_attrs');
    expect(() =>
      chooseSystemURL({ systemURL: 'postgresql://u@a,b:x/db', applicationURL: undefined, name: 'a' }),
    ).toThrow('Invalid database URL');
  });

  test('goes to any host for a URL of several, or one that asks for a primary', () => {
    expect(Hosts.of(`${TWO}&target_session_attrs=read-write`)).toBeDefined();
    expect(Hosts.of('postgresql://user@one/db?target_session_attrs=primary')).toBeDefined();
    expect(Hosts.of('postgresql://user@one/db')).toBeUndefined();
  });
});

/** The address of a host at which no server listens. */
async function deadHost(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

onlyOn('postgres', (dialect) => {
  test.each(['first', 'last'])('engines and clients work while the %s host is dead', async (place) => {
    const url = await dialect.createURL({ isMigrated: false });
    const { host } = new URL(url);
    const dead = await deadHost();
    const hosts = place === 'first' ? `${dead},${host}` : `${host},${dead}`;
    const systemDatabaseUrl = `${url.replace(host, hosts)}?target_session_attrs=read-write`;
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl });
    DBOS.registerWorkflow(async (name: string) => `hello ${name}`, { name: 'greet' });
    await DBOS.launch();
    await DBOS.registerQueue('q');
    const client = await DBOSClient.create({ systemDatabaseUrl, logger: silentLogger });
    onTestFinished(() => client.destroy());

    const handle = await client.enqueue({ queueName: 'q', workflowName: 'greet' }, 'you');

    expect(await handle.getResult()).toBe('hello you');
  });

  test('a database that is missing is created on the host that is there', async () => {
    const url = await dialect.createURL({ isMigrated: false });
    const { host, pathname } = new URL(url);
    const systemDatabaseUrl = url.replace(host, `${await deadHost()},${host}`).replace(pathname, `${pathname}_sys`);
    const { DBOS } = await createEngine(dialect, { systemDatabaseUrl });
    const workflow = DBOS.registerWorkflow(async () => 'ran', { name: 'workflow' });

    await DBOS.launch();

    expect(await workflow()).toBe('ran');
  });
});
