// Starts worker processes and waits for what they say. Whatever a test does, none of them outlives it.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { bundled } from '../rig/bundle.js';
import type { Command, WorkerSettings } from './worker-process.js';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Worker {
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly exited: Promise<Exit>;
  /** Sends a command and resolves when it has been carried out; rejects if the process ends first. */
  perform(command: Command): Promise<void>;
  /** Sends a command and does not wait. */
  send(command: Command): void;
  signal(name: NodeJS.Signals): void;
  /** Ends the process with SIGKILL and resolves when it is gone. */
  kill(): Promise<void>;
  /** What the process has logged. */
  log(): string;
}

/** Runs a program as the first process of a new namespace, as in a container. */
const AS_INIT = [
  'unshare',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
  ...['--pid', '--fork', '--kill-child'],
];

/** Whether this system lets us start a process with the ID 1. */
export function canStartInit(): boolean {
  const [program = '', ...options] = AS_INIT;
  return spawnSync(program, [...options, 'true']).status === 0;
}

/** A worker that has loaded its code and waits for the command to launch. With `asInit` its process ID is 1. */
export async function startWorker(settings: WorkerSettings, { asInit = false } = {}): Promise<Worker> {
  const program = await bundled(new URL('./worker-process.ts', import.meta.url));
  const line = [...(asInit ? AS_INIT : []), process.execPath, ...program, JSON.stringify(settings)];
  const child = spawn(line[0] ?? '', line.slice(1), { stdio: 'pipe' });
  const exited = once(child, 'exit').then(([code, signal]): Exit => ({ code, signal }));
  const log: string[] = [];
  const answers: string[] = [];
  const waiting: (() => void)[] = [];
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => log.push(chunk));
  // A command may be sent to a process that has just died.
  child.stdin.on('error', () => {});
  createInterface({ input: child.stdout }).on('line', (line) => {
    answers.push(line);
    for (const wake of waiting.splice(0)) wake();
  });

  async function answered(wanted: string): Promise<void> {
    while (!answers.includes(wanted)) {
      const exit = await Promise.race([
        exited,
        new Promise<undefined>((resolve) => waiting.push(() => resolve(undefined))),
      ]);
      if (exit && !answers.includes(wanted)) {
        throw new Error(`The process ended (${exit.signal ?? exit.code}) before "${wanted}":\n${log.join('')}`);
      }
    }
    answers.splice(answers.indexOf(wanted), 1);
  }

  const worker: Worker = {
    pid: child.pid ?? 0,
    exited,
    async perform(command) {
      worker.send(command);
      await answered(command.do);
    },
    send: (command) => void child.stdin.write(`${JSON.stringify(command)}\n`),
    signal: (name) => void (asInit ? process.kill(childOf(child.pid ?? 0), name) : child.kill(name)),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    log: () => log.join(''),
  };
  onTestFinished(() => worker.kill());
  await answered('loaded');
  return worker;
}

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}

export async function launchWorker(settings: WorkerSettings, options?: { readonly asInit: boolean }): Promise<Worker> {
  const worker = await startWorker(settings, options);
  await worker.perform({ do: 'launch' });
  return worker;
}

const POLL_MS = 15;

/** Waits for a condition that another process brings about; fails with the description when it does not come. */
export async function until(
  description: string,
  isMet: () => boolean | Promise<boolean>,
  { boundMs = 60_000 } = {},
): Promise<void> {
  const giveUpAt = Date.now() + boundMs;
  while (!(await isMet())) {
    if (Date.now() > giveUpAt) throw new Error(`Waited ${boundMs} ms in vain until ${description}.`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
