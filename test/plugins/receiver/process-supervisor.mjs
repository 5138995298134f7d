// Runs a program and outlives nobody: it ends the program when its input is closed, which also happens when the test run
// is killed.
import { spawn } from 'node:child_process';

const { command, args, env, cwd } = JSON.parse(process.argv[2]);
const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'ignore'] });
child.once('error', () => process.exit(1));
child.once('exit', () => process.exit(0));
console.log(child.pid);

const end = () => {
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), 15_000).unref();
};
process.stdin.on('end', end).resume();
