// Runs commands with a line of progress each, one after the other or side by side.
import { spawn, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const colours = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
const env = { ...process.env, PATH: `node_modules/.bin:${process.env.PATH}` };

/**
 * Stops at the first step that fails. Each step is `[title, command, ...arguments]`; output is shown when the step
 * fails, or always if `isLoud`.
 */
export function runSteps(steps, { isLoud = false } = {}) {
  for (const [title, command, ...args] of steps) {
    const startedAt = performance.now();
    if (isLoud) console.log(paint(36, `▸ ${title}`));
    const result = spawnSync(command, args, { stdio: isLoud ? 'inherit' : 'pipe', encoding: 'utf8', env });
    report(title, startedAt, result.status, isLoud ? '' : `${result.stdout ?? ''}${result.stderr ?? ''}`);
    if (result.status !== 0) process.exit(result.status ?? 1);
  }
}

/** Runs steps that do not depend on each other, one a core. All of them run, so that all failures are shown at once. */
export async function runTogether(steps) {
  const waiting = [...steps];
  let hasFailed = false;
  const lane = async () => {
    for (let step = waiting.shift(); step; step = waiting.shift()) {
      const [title, command, ...args] = step;
      const startedAt = performance.now();
      const { status, output } = await capture(command, args);
      report(title, startedAt, status, output);
      if (status !== 0) hasFailed = true;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, lane));
  if (hasFailed) process.exit(1);
}

function capture(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk) => (output += chunk));
    }
    child.on('error', (error) => resolve({ status: null, output: `${error.message}\n` }));
    child.on('close', (status) => resolve({ status, output }));
  });
}

function report(title, startedAt, status, output) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (status === 0) console.log(`${paint(32, '✓')} ${title} ${paint(90, `${seconds} s`)}`);
  else console.error(`${output}${paint(31, `✗ ${title} failed after ${seconds} s`)}`);
}
