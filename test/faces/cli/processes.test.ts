import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { everstep } from './processes.js';
import { call } from './terminals.js';

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe('the command as a process', () => {
  forEachDialect((dialect) => {
    test('migrates a database, and works on it by option and by environment', async () => {
      const url = await dialect.createURL({ isMigrated: false });

      const migrated = await everstep(['migrate', '-s', url]);
      const listed = await everstep(['workflow', 'list', '--json'], { environment: { DBOS_SYSTEM_DATABASE_URL: url } });

      expect(migrated).toMatchObject({ exitCode: 0, err: '' });
      expect(listed).toMatchObject({ exitCode: 0, err: '' });
      expect(JSON.parse(listed.out)).toEqual({ workflows: [], nextCursor: null });
    });

    test('acts on workflows of an engine in another process', async () => {
      const { DBOS, url } = await createEngine(dialect);
      const wait = DBOS.registerWorkflow(async () => DBOS.recv('never', 600), { name: 'wait' });
      await DBOS.launch();
      const handles = await Promise.all(['a', 'b'].map((workflowID) => DBOS.startWorkflow(wait, { workflowID })()));
      const environment = { DBOS_SYSTEM_DATABASE_URL: url };

      const cancelled = await everstep(['workflow', 'cancel', '-', '--json'], { environment, input: 'a\nb\n' });

      expect(JSON.parse(cancelled.out)).toEqual({ changed: 2, unchanged: [] });
      await Promise.all(handles.map((handle) => expect(handle.getResult()).rejects.toThrow(/cancelled/)));
    });

    test('ends at Ctrl-C while it asks, and does nothing', async () => {
      const url = await dialect.createURL();

      const { exitCode, err } = await everstep(['reset', '-s', url], { interruptAt: '[y/N]' });

      expect(exitCode).toBe(130);
      expect(err).toContain('Interrupted.');
      expect(await call(['workflow', 'list', '-s', url])).toMatchObject({ exitCode: 0 });
    });
  });

  onlyOn('postgres', (dialect) => {
    test('writes no password, whatever goes wrong', async () => {
      const url = new URL(await dialect.createURL());
      url.password = 's3cret';
      url.pathname = '/no_such_database';

      const { exitCode, out, err } = await everstep(['workflow', 'list', '-s', url.toString()], {
        environment: { EVERSTEP_DEBUG: '1' },
      });

      expect(exitCode).toBe(1);
      expect(out + err).not.toContain('s3cret');
      expect(err).toContain('no_such_database');
    });
  });

  test('refuses wrong usage with exit code 2 and one line', async () => {
    const { exitCode, out, err } = await everstep(['workflow', 'list', '--limt', '3']);

    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' });
    expect(err).toBe('Error: Unknown option --limt. Did you mean --limit? See: everstep workflow list --help\n');
  });

  test('runs the commands of dbos-config.yaml before it migrates, and to start', async () => {
    const folder = temporaryFolder();
    writeFileSync(
      join(folder, 'dbos-config.yaml'),
      'name: shop\ndatabase:\n  migrate:\n    - echo one >> log\nruntimeConfig:\n  start:\n    - echo two >> log\n    - exit 7\n',
    );

    const migrated = await everstep(['migrate', '--json'], { folder });
    const started = await everstep(['start'], { folder });

    expect(JSON.parse(migrated.out)).toMatchObject({ database: 'shop.sqlite', isMigrated: true });
    expect(started.exitCode).toBe(7);
    expect(readFileSync(join(folder, 'log'), 'utf8')).toBe('one\ntwo\n');
  });
});
