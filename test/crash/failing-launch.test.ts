// A launch that fails, at whatever point, leaves nothing behind that runs, logs, or keeps the process alive.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { type Sql, sql, table } from '../../src/kernel/sql/sql.js';
import { bundled } from '../rig/bundle.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';

/** Each is missed at another point of a launch. */
const TABLES = ['application_versions', 'executors', 'workflow_status', 'workflow_schedules'];

async function createURLWithout(dialect: TestDialect, name: string): Promise<string> {
  const url = await dialect.createURL();
  const database = await dialect.open(url);
  const cascade: Sql = dialect.name === 'postgres' ? sql`CASCADE` : sql``;
  await database.run(sql`DROP TABLE ${table(name)} ${cascade}`);
  await database.close();
  return url;
}

forEachDialect((dialect) => {
  test('a process whose launches fail ends by itself and logs nothing more', async () => {
    const brokenURLs = [];
    for (const name of TABLES) brokenURLs.push(await createURLWithout(dialect, name));
    const program = await bundled(new URL('./failing-launch-process.ts', import.meta.url));
    const given = [JSON.stringify(brokenURLs), await dialect.createURL()];
    const child = spawn(process.execPath, [...program, ...given], { stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    }

    const [code] = (await once(child, 'close')) as [number | null];

    expect(code, output).toBe(0);
    expect(output).not.toContain('launched');
    expect(output.match(/^failed: /gm)).toHaveLength(TABLES.length + 2);
    expect(output.slice(output.indexOf('\nend\n')).trim(), output).toBe('end');
  });
});
