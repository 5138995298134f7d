// A start that the database would refuse is refused before any code of the workflow has run.
import { expect, test } from 'vitest';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { createEngine } from '../rig/engines.js';
import { failureOf } from './succession.js';

forEachDialect((dialect) => {
  test('an input in which a serializer wrote a NUL starts nothing', async () => {
    const serializer = {
      name: () => 'nul',
      stringify: (value: unknown) => `\0${JSON.stringify(value)}`,
      parse: (text: string | null | undefined) => JSON.parse((text ?? 'null').replace('\0', '')) as unknown,
    };
    const { DBOS } = await createEngine(dialect, { serializer });
    let calls = 0;
    const count = DBOS.registerWorkflow(async (_text: string) => void (calls += 1), { name: 'count' });
    await DBOS.launch();

    const error = await failureOf((async () => DBOS.startWorkflow(count)('x'))());

    expect(error).toMatchObject({ code: 'SERIALIZATION_FAILED' });
    expect(calls).toBe(0);
    expect(await DBOS.listWorkflows({})).toEqual([]);
  });
});

onlyOn('postgres', (dialect) => {
  test('a large input that the database refuses starts nothing', async () => {
    const { DBOS, url } = await createEngine(dialect);
    let calls = 0;
    const count = DBOS.registerWorkflow(async (_text: string) => void (calls += 1), { name: 'count' });
    await DBOS.launch();
    const database = await dialect.open(url);
    const check = 'ALTER TABLE dbos.workflow_status ADD CONSTRAINT small CHECK (length(inputs) < 1000000)';
    await database.exclusive((connection) => connection.script(check));

    const error = await failureOf((async () => DBOS.startWorkflow(count)('x'.repeat(1_000_001)))());

    expect(error).toMatchObject({ code: 'DATABASE_STATEMENT' });
    expect(calls).toBe(0);
  });
});
