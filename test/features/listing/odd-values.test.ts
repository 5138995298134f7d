// Workflows whose stored values are hard to show.
import { describe, expect, test } from 'vitest';
import { sql, table } from '../../../src/kernel/sql/sql.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';

const cyclic: Record<string, unknown> = {};
cyclic['self'] = cyclic;

function chain(levels: number): string {
  const names = Array.from({ length: levels }, (_, level) => `a${level}`);
  const json = Object.fromEntries(names.map((name) => [name, [0, 0]]));
  const equalities = Object.fromEntries(names.slice(1).map((name, level) => [`a${level}`, [`${name}.0`, `${name}.1`]]));
  return JSON.stringify({ json, meta: { referentialEqualities: equalities }, __dbos_serializer: 'superjson' });
}

describe('a listing', () => {
  forEachDialect((dialect) => {
    test.each<[string, unknown, string]>([
      ['a big integer', 12n, '12n'],
      ['a cyclic object', cyclic, 'Circular'],
      ['undefined', undefined, 'undefined'],
      ['a large array', Array.from({ length: 100_000 }, () => 'x'), '…'],
    ])('shows a workflow that threw %s', async (_, thrown, shown) => {
      const { DBOS } = await createEngine(dialect);
      const fail = DBOS.registerWorkflow(
        async () => {
          throw thrown;
        },
        { name: 'fail' },
      );
      await DBOS.launch();
      const handle = await DBOS.startWorkflow(fail)();
      await handle.getResult().catch(() => {});

      const [found] = await DBOS.listWorkflows({});

      expect(String(found?.error)).toContain(shown);
    });

    test('shows a value that stands for too many as its text', async () => {
      const { DBOS } = await createEngine(dialect);
      const work = DBOS.registerWorkflow(async () => 1, { name: 'work' });
      await DBOS.launch();
      await (await DBOS.startWorkflow(work, { workflowID: 'w' })()).getResult();
      const text = chain(60);
      const workflows = table('workflow_status');
      await engineOf(DBOS).runtime.database.run(
        sql`UPDATE ${workflows} SET output = ${text} WHERE workflow_uuid = ${'w'} RETURNING workflow_uuid`,
      );

      const [found] = await DBOS.listWorkflows({});

      expect(found?.output).toBe(text);
    });
  });
});
