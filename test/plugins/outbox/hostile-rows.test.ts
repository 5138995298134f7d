// Rows that other programs have written with values that no outbox writes. Each is handled or put aside by itself, and the
// other messages of its topic arrive.
import { afterAll, describe, expect, test } from 'vitest';
import { type DialectName, makeOutboxTable } from '../../../src/plugins/outbox/schema/tables.js';
import { constant } from '../../../src/plugins/outbox/consume/strategies.js';
import { until } from '../../crash/processes.js';
import { dropDatabase } from '../transaction/scene.js';
import { DIALECTS, type OutboxScene, setOutbox, sourceOf } from './scene.js';

afterAll(dropDatabase);

/** SQL literals that a column of a type may hold. SQLite stores any of them in any column. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  sqlite: ['NULL', "x'ff'", "'text'", "'{'", "'[1]'", '5', '1e300', '9223372036854775807', '-9223372036854775808'],
  BYTEA: ["''", "'\\xff00'", "'{'"],
  JSONB: ["'[1]'", "'5'", "'null'", '\'"x"\'', '\'{"a": {"b": 1}, "content-type": 5}\''],
  BIGINT: ['9223372036854775807', '-9223372036854775808'],
  INTEGER: ['2147483647', '-2147483648'],
  SMALLINT: ['32767', '-32768'],
  TIMESTAMPTZ: ["'infinity'", "'-infinity'", "'290000-01-01'", "'4000-01-01 BC'"],
  'VARCHAR(255)': ["''", "E'a\\r\\nb'"],
  UUID: ['gen_random_uuid()'],
};
const GOOD = 6;

/** Inserts good messages, and between them one for each column and value, once to be handled and once to fail. */
async function insertAll(
  { query }: OutboxScene,
  dialect: DialectName,
  columnNames: readonly string[],
): Promise<number> {
  const isPostgres = dialect === 'postgres';
  const json = (body: string) => (isPostgres ? `convert_to('${body}', 'UTF8')` : `CAST('${body}' AS BLOB)`);
  const insert = (fields: Readonly<Record<string, string>>) => {
    const all = { queue: "'topic'", ...fields };
    return query(`INSERT INTO outbox (${Object.keys(all).join()}) VALUES (${Object.values(all).join()})`);
  };
  const lease = { acquired_at: isPostgres ? 'now()' : '1', acquired_token: isPostgres ? 'gen_random_uuid()' : "'y'" };
  let inserted = 0;
  for (let n = 0; n < GOOD / 2; n += 1) await insert({ payload: json(`"good ${n}"`) });
  for (const { name, type } of makeOutboxTable().columns) {
    if (!columnNames.includes(name)) continue;
    for (const value of VALUES[isPostgres ? type.postgres : 'sqlite'] ?? []) {
      for (const body of ['"handled"', '"fails"']) {
        const fields = { payload: json(body), ...(name.startsWith('acquired') && lease), [name]: value };
        // Some are refused by the table.
        if (
          await insert(fields).then(
            () => true,
            () => false,
          )
        )
          inserted += 1;
      }
    }
  }
  for (let n = GOOD / 2; n < GOOD; n += 1) await insert({ payload: json(`"good ${n}"`) });
  return inserted;
}

const RETRY = { retry: constant({ delay: '1ms', attempts: 3 }), maxDeliveries: 5 };
type Handler = (body: unknown) => Promise<void>;
const SUBSCRIBE: Readonly<Record<string, (scene: OutboxScene, handler: Handler) => void>> = {
  'by handlers': ({ outbox }, handler) => outbox.on('topic', handler, RETRY),
  'in order': ({ outbox }, handler) => outbox.on('topic', handler, { ...RETRY, order: 'key' }),
  'by subscriptions': ({ outbox }, handler) => outbox.on('topic', handler, { ...RETRY, subscription: 'one' }),
  'in transactions': (scene, handler) =>
    scene.outbox.on('topic', handler, { ...RETRY, transactional: sourceOf(scene) }),
  'by workflows': ({ outbox, DBOS }, handler) => outbox.on('topic', DBOS.registerWorkflow(handler, { name: 'take' })),
};

describe.each(DIALECTS)('rows on %s that no outbox writes do not stop those that are handled', (dialect, name) => {
  test.each(Object.entries(SUBSCRIBE))('%s', async (_, subscribe) => {
    const scene = await setOutbox(name, { isLaunched: false });
    const seen = new Set<unknown>();
    subscribe(scene, async (body) => {
      if (body === 'fails') throw new Error('It fails.');
      seen.add(body);
    });
    const columns = makeOutboxTable().columns.map((column) => column.name);
    const inserted = await insertAll(
      scene,
      dialect,
      columns.filter((column) => column !== 'id' && column !== 'queue'),
    );
    expect(inserted).toBeGreaterThan(30);

    await scene.DBOS.launch();

    const expected = Array.from({ length: GOOD }, (_, n) => `good ${n}`);
    await until('the good ones have arrived', () => expected.every((body) => seen.has(body)));
    const rejected = async () => (await scene.outbox.dlq.list({ limit: 1000 })).letters;
    await until('what cannot be read is put aside', async () => (await rejected()).length >= 6);
    await until('most are gone', async () => (await scene.query('SELECT * FROM outbox')).length < inserted / 2);
  });
});
