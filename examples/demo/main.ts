// The store at work: a process writes checkpoints, is killed in the middle of it, and another process finds every
// checkpoint that the first one was told was durable.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '../../src/base/log.js';
import { loadSteps } from '../../src/store/steps.js';
import { Store } from '../../src/store/store.js';

const CONFIRMED_BEFORE_KILL = 2000;
const isTerminal = process.stdout.isTTY && !process.env['NO_COLOR'];
const paint = (code: number, text: string): string => (isTerminal ? `\u001b[${code}m${text}\u001b[0m` : text);
const say = (text: string): void => console.log(text);

const folder = mkdtempSync(join(tmpdir(), 'everstep-demo-'));
const url = `sqlite:///${join(folder, 'demo.sqlite')}`;
try {
  say(paint(1, 'Everstep: checkpoints that survive a SIGKILL'));
  say(`  database  ${url}`);
  const confirmed = await writeUntilKilled();
  await look(confirmed);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Runs the writing process and kills it; returns the checkpoints that it reported as durable. */
async function writeUntilKilled(): Promise<string[]> {
  const script = fileURLToPath(new URL('./writer-process.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, url], { stdio: ['ignore', 'pipe', 'inherit'] });
  const confirmed: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    confirmed.push(line);
    if (confirmed.length % 100 === 0) showProgress(confirmed.length);
    if (confirmed.length === CONFIRMED_BEFORE_KILL) child.kill('SIGKILL');
  }
  if (isTerminal) process.stdout.write('\n');
  say(`  ${paint(31, 'SIGKILL')}   process ${child.pid} is gone, in the middle of its work`);
  return confirmed;
}

function showProgress(count: number): void {
  const width = 30;
  const filled = Math.min(width, Math.round((count / CONFIRMED_BEFORE_KILL) * width));
  const line = `  writing   ${'█'.repeat(filled)}${'░'.repeat(width - filled)} ${count} checkpoints durable`;
  if (isTerminal) process.stdout.write(`\r${line}`);
  else if (count % 500 === 0) say(line);
}

async function look(confirmed: readonly string[]): Promise<void> {
  const store = await Store.open({ url, logger: silentLogger });
  const workflowIDs = [...new Set(confirmed.map((line) => line.split(' ')[0] ?? ''))];
  const steps = await loadSteps(store.database, workflowIDs);
  const stored = new Set(steps.map((step) => `${step.workflowID} ${step.stepID}`));
  const lost = confirmed.filter((line) => !stored.has(line));
  await store.close();
  say(`  found     ${stored.size} checkpoints of ${workflowIDs.length} workflows in the file`);
  if (lost.length > 0) {
    say(paint(31, `  ✗ ${lost.length} checkpoints were reported durable and are missing`));
    process.exitCode = 1;
  } else {
    say(paint(32, `  ✓ all ${confirmed.length} that were reported durable are there`));
  }
}
