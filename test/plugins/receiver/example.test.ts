import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FolderReceiver } from '../../../examples/folder-receiver/folder-receiver.js';
import { forEachDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { until } from '../../rig/manual-clock.js';
import { Tally } from './spy.js';

test('the guide shows the example that is tested here', () => {
  const guide = readFileSync(new URL('../../../docs/guides/receivers.md', import.meta.url), 'utf8');
  const example = readFileSync(
    new URL('../../../examples/folder-receiver/folder-receiver.ts', import.meta.url),
    'utf8',
  ).replace("'../../src/receiver.js'", "'everstep/receiver'");

  expect(guide).toContain(`\n\`\`\`ts\n${example}\`\`\`\n`);
});

forEachDialect((dialect) => {
  test('the receiver of the guide makes workflows of files', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'everstep-folder-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { DBOS } = await createEngine(dialect);
    const receiver = new FolderReceiver({ dbos: DBOS });
    const tally = new Tally();
    const ran: string[] = [];
    const work = DBOS.registerWorkflow(
      async ({ item }: { item: string }) => {
        ran.push(item);
        tally.add();
      },
      { name: 'work' },
    );
    receiver.registerConsumer(work, { folder });
    writeFileSync(join(folder, '1.json'), '{"item":"a"}');
    writeFileSync(join(folder, '2.json'), 'nonsense');

    await DBOS.launch();
    await tally.reach(1);
    writeFileSync(join(folder, '3.json'), '{"item":"b"}');
    await tally.reach(2);
    await until(() => readdirSync(folder).length === 0);

    expect(ran).toEqual(['a', 'b']);
    expect(await receiver.listDeadLetters(work)).toMatchObject([{ id: `folder-${folder}-2.json` }]);
  });

  test('the receiver of the guide fails the launch when there is no folder', async () => {
    const { DBOS } = await createEngine(dialect);
    const work = DBOS.registerWorkflow(async () => {}, { name: 'work' });
    new FolderReceiver({ dbos: DBOS }).registerConsumer(work, { folder: '/nowhere' });

    await expect(DBOS.launch()).rejects.toThrow('folder "/nowhere"');
  });
});
