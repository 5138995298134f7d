// Workflows whose code ends the process.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { bundled } from '../rig/bundle.js';
import { forEachDialect } from '../rig/dialects.js';

forEachDialect((dialect) => {
  /** Runs a process until it ends; see fatal-process.ts. */
  async function run(scenario: string, url: string): Promise<{ code: number; logged: string[] }> {
    const program = await bundled(new URL('./fatal-process.ts', import.meta.url));
    const ended = await promisify(execFile)(process.execPath, [...program, url, scenario]).catch(
      (error: unknown) => error as { code: number; stdout: string },
    );
    return { code: 'code' in ended ? ended.code : 0, logged: ended.stdout.trim().split('\n') };
  }

  test('a workflow with a rejection that nothing handles is named, and becomes a dead letter after three processes', async () => {
    const url = await dialect.createURL();
    const named = 'Workflow "w" (careless) ends the process by a promise that it does not await or catch.';

    const ends = [await run('rejection', url), await run('rejection', url), await run('rejection', url)];
    const last = await run('rejection', url);

    expect(ends.map(({ code }) => code)).toEqual([1, 1, 1]);
    expect(ends[0]?.logged).toEqual([named]);
    expect(ends[2]?.logged).toEqual(['Workflow "w" is a dead letter now. Fix its code before you resume it.', named]);
    expect(last).toEqual({
      code: 0,
      logged: ['w: AWAITED_WORKFLOW_EXCEEDED_MAX_RECOVERY_ATTEMPTS, beside: PENDING'],
    });
  });

  test('a workflow with an exception that nothing catches is named', async () => {
    const ended = await run('exception', await dialect.createURL());

    expect(ended).toEqual({
      code: 1,
      logged: ['Workflow "w" (careless) ends the process by an exception that nothing catches.'],
    });
  });
});
