// Runs commands one after the other with a line of progress each; stops at the first that fails.
import { spawnSync } from 'node:child_process';

const colours = process.stdout.isTTY && !process.env.NO_COLOR;
const paint = (code, text) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);

/** Each step is `[title, command, ...arguments]`; output is shown when the step fails, or always if `isLoud`. */
export function runSteps(steps, { isLoud = false } = {}) {
  for (const [title, command, ...args] of steps) {
    const startedAt = performance.now();
    if (isLoud) console.log(paint(36, `▸ ${title}`));
    const result = spawnSync(command, args, {
      stdio: isLoud ? 'inherit' : 'pipe',
      encoding: 'utf8',
      env: { ...process.env, PATH: `node_modules/.bin:${process.env.PATH}` },
    });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    if (result.status !== 0) {
      if (!isLoud) console.error(`${result.stdout ?? ''}${result.stderr ?? ''}`);
      console.error(paint(31, `✗ ${title} failed after ${seconds} s`));
      process.exit(result.status ?? 1);
    }
    console.log(`${paint(32, '✓')} ${title} ${paint(90, `${seconds} s`)}`);
  }
}
