// BEGIN with the first statement, on a client of `pg`.
import pg, { type ClientBase, type Submittable } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { DeferredBegin } from '../../../src/plugins/transaction/deferred-begin.js';
import type { ProtocolConnection } from '../../../src/run/plugin.js';
import { onlyOn, postgres } from '../../rig/dialects.js';
import { startWiretap, type Wiretap } from '../../rig/wiretap.js';

interface Scene {
  readonly client: ClientBase;
  readonly wiretap: Wiretap;
  /** The notes that were committed, as another session sees them. */
  readonly notes: () => Promise<unknown[]>;
}

async function setup(): Promise<Scene> {
  const url = await postgres.createURL({ isMigrated: false });
  const wiretap = await startWiretap(url);
  const [client, other] = [new pg.Client(wiretap.url), new pg.Client(url)];
  onTestFinished(async () => {
    await client.end();
    await other.end();
  });
  client.on('error', () => {});
  await client.connect();
  await other.connect();
  await other.query('CREATE TABLE effects (note TEXT PRIMARY KEY)');
  wiretap.take();
  const notes = async () =>
    (await other.query<{ note: unknown }>('SELECT note FROM effects ORDER BY note')).rows.map(({ note }) => note);
  return { client, wiretap, notes };
}

const ONE = `INSERT INTO effects VALUES ('one') RETURNING note`;
const WITH_VALUE = 'INSERT INTO effects VALUES ($1) RETURNING note';
const JOINED = 'PBEPBDES';

type Query = (client: ClientBase) => Promise<{ readonly rows: unknown[] }>;

const joined: [string, Query][] = [
  ['a text', (client) => client.query(ONE)],
  ['a text with a semicolon at its end', (client) => client.query(` ${ONE};\n`)],
  ['values', (client) => client.query(WITH_VALUE, ['one'])],
  ['an object', (client) => client.query({ text: ONE })],
  ['a named statement', (client) => client.query({ name: 'note', text: WITH_VALUE, values: ['one'] })],
  ['a callback', (client) => new Promise((resolve) => client.query(ONE, (_, result) => resolve(result)))],
];

const ahead: [string, string][] = [
  ['several statements in one text', `SELECT 1; ${ONE}`],
  ['a setting', `SET LOCAL statement_timeout = '10s'`],
  ['a block', `DO $$ BEGIN INSERT INTO effects VALUES ('one'); END $$`],
  ['a comment in front', `/* why */ ${ONE}`],
  ['a long text', `INSERT INTO effects VALUES ('${'x'.repeat(70_000)}')`],
  ['nothing', ''],
];

/** Reads its rows one at a time, as the cursors of `pg` do. */
class Cursor implements Submittable {
  readonly notes: unknown[] = [];
  readonly done: Promise<unknown[]>;
  #resolve!: (notes: unknown[]) => void;

  constructor(readonly text: string) {
    this.done = new Promise((resolve) => (this.#resolve = resolve));
  }

  submit(connection: unknown): void {
    const protocol = connection as ProtocolConnection & { flush(): void };
    protocol.parse({ name: '', text: this.text, types: [] });
    protocol.bind({ portal: '', statement: '', values: [], binary: false });
    protocol.describe({ type: 'P', name: '' });
    this.handlePortalSuspended(protocol);
  }

  handlePortalSuspended(connection: ProtocolConnection & { flush(): void }): void {
    connection.execute({ portal: '', rows: 1 });
    connection.flush();
  }

  handleRowDescription(): void {}

  handleDataRow({ fields }: { fields: unknown[] }): void {
    this.notes.push(fields[0]);
  }

  handleCommandComplete(_: unknown, connection: ProtocolConnection): void {
    connection.sync();
  }

  handleReadyForQuery(): void {
    this.#resolve(this.notes);
  }

  handleError(): void {}
}

/** Sends rows, as the streams for COPY do. */
class Copy implements Submittable {
  readonly done: Promise<void>;
  #resolve!: () => void;

  constructor() {
    this.done = new Promise((resolve) => (this.#resolve = resolve));
  }

  submit(connection: unknown): void {
    (connection as { query(text: string): void }).query('COPY effects FROM STDIN');
  }

  handleCopyInResponse(connection: { sendCopyFromChunk(chunk: Buffer): void; endCopyFrom(): void }): void {
    connection.sendCopyFromChunk(Buffer.from('one\n'));
    connection.endCopyFrom();
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#resolve();
  }

  handleError(): void {}
}

onlyOn('postgres', () => {
  describe('goes in one round trip with', () => {
    test.each(joined)('%s', async (_, query) => {
      const { client, wiretap, notes } = await setup();
      const begin = new DeferredBegin(client, 'BEGIN');

      const { rows } = await query(client);

      expect(rows).toEqual([{ note: 'one' }]);
      expect(wiretap.take()).toEqual([JOINED]);
      expect(begin.drop()).toBe(false);
      expect(await notes()).toEqual([]);
      await client.query('COMMIT');
      expect(await notes()).toEqual(['one']);
      expect(wiretap.take()).toEqual(['Q']);
    });

    test('a cursor', async () => {
      const { client, wiretap, notes } = await setup();
      new DeferredBegin(client, 'BEGIN');

      const cursor = client.query(new Cursor(`INSERT INTO effects VALUES ('one'), ('two') RETURNING note`));

      expect(await cursor.done).toEqual(['one', 'two']);
      expect(wiretap.take()).toEqual(['PBEPBDEHEHEHS']);
      await client.query('ROLLBACK');
      expect(await notes()).toEqual([]);
    });
  });

  describe('goes ahead of', () => {
    test.each(ahead)('%s', async (_, text) => {
      const { client, wiretap, notes } = await setup();
      const begin = new DeferredBegin(client, 'BEGIN');

      await client.query(text);

      expect(wiretap.take()).toEqual(['Q', 'Q']);
      expect(begin.drop()).toBe(false);
      await client.query('ROLLBACK');
      expect(await notes()).toEqual([]);
    });

    test('COPY', async () => {
      const { client, notes } = await setup();
      new DeferredBegin(client, 'BEGIN');

      await client.query(new Copy()).done;

      expect(await notes()).toEqual([]);
      await client.query('COMMIT');
      expect(await notes()).toEqual(['one']);
    });
  });

  test('it has its isolation level', async () => {
    const { client } = await setup();
    new DeferredBegin(client, 'BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY');

    const { rows } = await client.query(
      `SELECT current_setting('transaction_isolation') AS level, current_setting('transaction_read_only') AS only`,
    );

    expect(rows).toEqual([{ level: 'serializable', only: 'on' }]);
  });

  test.each([
    ['that can go with it', ONE],
    ['that cannot', `SET LOCAL statement_timeout = '10s'`],
  ])('several statements at once, the first of them one %s, are in the transaction', async (_, first) => {
    const { client, notes } = await setup();
    new DeferredBegin(client, 'BEGIN');

    await Promise.all([first, `INSERT INTO effects VALUES ('two')`].map((text) => client.query(text)));

    expect(await notes()).toEqual([]);
    await client.query('ROLLBACK');
    expect(await notes()).toEqual([]);
  });

  test.each([
    ['the syntax, in a text', (client: ClientBase) => client.query('SELECT FROM WHERE'), '42601'],
    ['the syntax, with values', (client: ClientBase) => client.query('SELECT $1 FROM WHERE', ['a']), '42601'],
    ['the syntax, of several', (client: ClientBase) => client.query('SELECT 1; SELECT FROM WHERE'), '42601'],
    ['a value', (client: ClientBase) => client.query(`SELECT 1 / (SELECT 0)`), '22012'],
    ['the number of values', (client: ClientBase) => client.query('SELECT $1, $2', ['a']), '08P01'],
    ['a missing value', (client: ClientBase) => client.query('SELECT $1'), '42P02'],
  ])('a first statement that fails, by %s, leaves a failed transaction', async (_, query, code) => {
    const { client, notes } = await setup();
    new DeferredBegin(client, 'BEGIN');

    await expect(query(client)).rejects.toMatchObject({ code });

    await expect(client.query(ONE)).rejects.toMatchObject({ code: '25P02' });
    await client.query('ROLLBACK');
    expect(await notes()).toEqual([]);
    await client.query(ONE);
    expect(await notes()).toEqual(['one']);
  });

  test('a value that cannot be sent leaves the transaction open', async () => {
    const { client, notes } = await setup();
    new DeferredBegin(client, 'BEGIN');
    const value = {
      toPostgres() {
        throw new Error('no text');
      },
    };

    await expect(client.query(WITH_VALUE, [value])).rejects.toThrow('no text');

    await client.query(ONE);
    expect(await notes()).toEqual([]);
    await client.query('COMMIT');
    expect(await notes()).toEqual(['one']);
  });

  test.each([
    ['one that could go with it', ONE],
    ['one that could not', `DO $$ BEGIN INSERT INTO effects VALUES ('one'); END $$`],
  ])('if it fails, no statement is executed: %s', async (_, first) => {
    const { client, notes } = await setup();
    const begin = new DeferredBegin(client, 'BEGIN NONSENSE');

    const results = await Promise.allSettled(
      [first, `INSERT INTO effects VALUES ('two')`].map((text) => client.query(text)),
    );

    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(begin.failure).toMatchObject({ code: '42601' });
    expect(begin.drop()).toBe(false);
    await expect(client.query(ONE)).rejects.toThrow();
    expect(await notes()).toEqual([]);
  });

  test('without a statement there is no transaction', async () => {
    const { client, wiretap, notes } = await setup();
    const begin = new DeferredBegin(client, 'BEGIN');

    expect(begin.drop()).toBe(true);

    expect(wiretap.take()).toEqual([]);
    await client.query(ONE);
    expect(wiretap.take()).toEqual(['Q']);
    expect(await notes()).toEqual(['one']);
  });
});
