// Conditions of the application's database that pass, such as a full disk: a step waits for their end.
import BetterSqlite3 from 'better-sqlite3';
import { expect, test } from 'vitest';
import { BetterSqlite3DataSource } from '../../../src/plugins/transaction/adapters/better-sqlite3.js';
import { onlyOn, sqlite } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { effectsIn, type Scene, setScene } from './scene.js';

/** Makes so many inserts into a table fail. The sequence counts them, because it is not rolled back. */
async function failInserts(scene: Scene, table: string, { code, count }: { code: string; count: number }) {
  await scene.query('CREATE SEQUENCE inserts');
  await scene.query(`
    CREATE FUNCTION fail_insert() RETURNS trigger LANGUAGE plpgsql AS $body$
    BEGIN
      IF nextval('inserts') <= ${count} THEN RAISE EXCEPTION 'in the way' USING ERRCODE = '${code}'; END IF;
      RETURN NEW;
    END $body$`);
  await scene.query(`CREATE TRIGGER fail BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION fail_insert()`);
}

const RECORDS = 'dbos.transaction_completion';

async function setup() {
  const scene = await setScene('node-postgres');
  const { DBOS, source, run } = await scene.engine();
  let bodies = 0;
  const workflow = DBOS.registerWorkflow(
    (failure: string | null) =>
      source.runTransaction(
        async () => {
          bodies += 1;
          await run(`INSERT INTO effects (workflow_id, note) VALUES ('w', 'once')`);
          if (failure !== null) throw new RangeError(failure);
          return 'done';
        },
        { name: 'step' },
      ),
    { name: 'workflow' },
  );
  await DBOS.launch();
  return { scene, workflow, bodies: () => bodies };
}

onlyOn('postgres', () => {
  test.each([
    ['effects', '53100'],
    ['effects', '25006'],
    ['effects', '58030'],
    [RECORDS, '53100'],
    [RECORDS, '57014'],
    [RECORDS, '28000'],
    [RECORDS, '40003'],
  ])('an insert into %s that fails with %s for a moment is no outcome', async (table, code) => {
    const { scene, workflow, bodies } = await setup();
    await failInserts(scene, table, { code, count: 2 });

    expect(await workflow(null)).toBe('done');

    expect(bodies()).toBe(3);
    expect(await effectsIn(scene)).toEqual(['once']);
  });

  test.each(['57014', '55P03', '22012', '42501'])('a statement of the function that fails with %s is', async (code) => {
    const { scene, workflow, bodies } = await setup();
    await failInserts(scene, 'effects', { code, count: 1 });

    await expect(workflow(null)).rejects.toMatchObject({ code });

    expect(bodies()).toBe(1);
  });

  test.each([
    ['53100', 2],
    ['42501', 1_000],
  ])('an error of the function is its outcome although its record fails with %s, %s times', async (code, count) => {
    const { scene, workflow, bodies } = await setup();
    await failInserts(scene, RECORDS, { code, count });

    await expect(workflow('own')).rejects.toThrow(new RangeError('own'));

    expect(bodies()).toBe(1);
    expect(await effectsIn(scene)).toEqual([]);
  });
});

onlyOn('sqlite', () => {
  test('a full disk for a moment is no outcome', async () => {
    const { DBOS } = await createEngine(sqlite);
    const database = new BetterSqlite3((await sqlite.createURL()).replace('sqlite:///', ''));
    database.exec('CREATE TABLE blobs (blob)');
    const source = new BetterSqlite3DataSource('app', database, { owner: DBOS });
    let bodies = 0;
    const workflow = DBOS.registerWorkflow(
      () =>
        source.runTransaction(
          async () => {
            bodies += 1;
            database.pragma(`max_page_count = ${bodies < 3 ? 1 : 100_000}`);
            database.exec('INSERT INTO blobs VALUES (zeroblob(1000000))');
            return 'done';
          },
          { name: 'step' },
        ),
      { name: 'workflow' },
    );
    await DBOS.launch();

    expect(await workflow()).toBe('done');

    expect(bodies).toBe(3);
    expect(database.prepare('SELECT COUNT(*) AS count FROM blobs').get()).toEqual({ count: 1 });
    await DBOS.shutdown();
    database.close();
  });
});
