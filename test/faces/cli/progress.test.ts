import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/kernel/base/clock.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { call } from './terminals.js';

/** A second passes between any two looks at it, so that each progress is shown. */
function hurriedClock(): Clock {
  let lookedAt = 0;
  return Object.assign(Object.create(systemClock) as Clock, {
    now: () => systemClock.now() + (lookedAt += 1) * 1000,
  });
}

forEachDialect((dialect) => {
  const everstep = (line: string, isOverwritable: boolean) =>
    call(line, { isOverwritable, clock: hurriedClock(), folder: inject('folder') });

  async function setup() {
    const { DBOS, url } = await createEngine(dialect);
    const workflow = DBOS.registerWorkflow(async () => {}, { name: 'workflow' });
    await DBOS.launch();
    await workflow();
    // What is kept goes by the time of creation.
    await engineOf(DBOS).runtime.database.run(
      sql`UPDATE ${table('workflow_status')} SET created_at = created_at - 1000`,
    );
    await workflow();
    return { url, file: join(inject('folder'), `${newID()}.jsonl`) };
  }

  test('migrate shows a bar on a terminal and lines elsewhere', async () => {
    const [first, second] = [
      await dialect.createURL({ isMigrated: false }),
      await dialect.createURL({ isMigrated: false }),
    ];

    const onTerminal = await everstep(`migrate -s ${first}`, true);
    const elsewhere = await everstep(`migrate -s ${second}`, false);

    expect(onTerminal.err).toMatch(/\r\u001b\[K█░{23} +\d %  \d of \d+ migrations applied, .* left/);
    expect(onTerminal.err).toMatch(/\r\u001b\[K$/);
    expect(elsewhere.err).toMatch(/^(?:\d+ of \d+ migrations applied\n)+$/);
  });

  test('export and import show a bar on a terminal and lines elsewhere', async () => {
    const { url, file } = await setup();
    const other = await dialect.createURL();

    const exported = await everstep(`workflow export -o ${file} -s ${url}`, true);
    const imported = await everstep(`workflow import ${file} -s ${other}`, true);

    expect(exported.err).toMatch(/█{12}░{12}  50 %  1 workflow exported, .* left/);
    expect(imported.err).toMatch(/█{24} 100 %  0\.0 MB read/);
    expect((await everstep(`workflow export -s ${url}`, false)).err).not.toContain('\u001b');
  });

  test('gc shows a bar on a terminal', async () => {
    const { url } = await setup();

    const called = await everstep(`gc --keep 1 --yes -s ${url}`, true);

    expect(called).toMatchObject({ exitCode: 0, out: '1 workflow deleted.\n' });
    expect(called.err).toMatch(/█{24} 100 %  1 workflow deleted/);
  });
});
