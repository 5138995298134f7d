// Brokers for tests and benchmarks: real programs on free loopback ports, each in a temporary folder, ended by their IDs.
import { spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../rig/free-port.mjs';

export interface BrokerServer {
  readonly port: number;
  /** Ends the program; what it has stored stays. */
  stop(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Ends it and removes its folder. */
  remove(): Promise<void>;
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const FOLDERS = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/lib/rabbitmq/bin'];

/** The path of an installed program. */
export function findProgram(name: string): string | undefined {
  return FOLDERS.map((folder) => join(folder, name)).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      // Not there, or not for us: look in the next folder.
      return false;
    }
  });
}

/** Whether the programs are installed; says so if one is missing. */
export function hasPrograms(...names: readonly string[]): boolean {
  const missing = names.filter((name) => findProgram(name) === undefined);
  if (missing.length > 0) console.warn(`Skipped: ${missing.join(' and ')} is not installed on this machine.`);
  return missing.length === 0;
}

export function startRedis(): Promise<BrokerServer> {
  return startServer((port, folder) => [
    {
      command: findProgram('redis-server') ?? 'redis-server',
      args: `--port ${port} --bind 127.0.0.1 --dir ${folder} --appendonly yes --appendfsync everysec`.split(' '),
    },
  ]);
}

export function startNats(): Promise<BrokerServer> {
  return startServer((port, folder) => [
    {
      command: findProgram('nats-server') ?? 'nats-server',
      args: `-a 127.0.0.1 -p ${port} -js -sd ${folder}`.split(' '),
    },
  ]);
}

/** With an `epmd` of its own in the foreground; otherwise Erlang leaves a daemon behind. */
export async function startRabbitMQ(): Promise<BrokerServer> {
  const [epmdPort, distPort] = [await freePort(), await freePort()];
  return startServer((port, folder) => {
    const epmd = { ERL_EPMD_PORT: String(epmdPort), ERL_EPMD_ADDRESS: '127.0.0.1' };
    const env = {
      ...epmd,
      HOME: folder,
      RABBITMQ_NODENAME: `everstep${port}@localhost`,
      RABBITMQ_NODE_PORT: String(port),
      RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
      RABBITMQ_DIST_PORT: String(distPort),
      RABBITMQ_MNESIA_BASE: folder,
      RABBITMQ_LOG_BASE: folder,
      RABBITMQ_LOGS: join(folder, 'rabbit.log'),
      RABBITMQ_PID_FILE: join(folder, 'rabbit.pid'),
      RABBITMQ_CONFIG_FILE: join(folder, 'none'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '+sbwt none +sbwtdcpu none',
    };
    return [
      { command: findProgram('epmd') ?? 'epmd', args: [], env: epmd },
      { command: '/usr/lib/rabbitmq/bin/rabbitmq-server', args: [], env },
    ];
  });
}

async function startServer(programs: (port: number, folder: string) => Program[]): Promise<BrokerServer> {
  const folder = mkdtempSync(join(tmpdir(), 'everstep-broker-'));
  const port = await freePort();
  let running: Running[] = [];
  const stop = async (): Promise<void> => {
    // The last one began last and ends first.
    for (const one of running.splice(0).reverse()) await one.stop();
  };
  const start = async (): Promise<void> => {
    running = programs(port, folder).map((program) => run(program, folder));
    const hasEnded = Promise.all(running.map((one) => one.hasExited)).then(() => Promise.reject(new Error('ended')));
    await Promise.race([untilListening(port), hasEnded]);
    hasEnded.catch(() => {
      // It has listened before; whoever uses it notices its end.
    });
  };
  await start();
  return {
    port,
    start,
    stop,
    async remove() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Running {
  readonly hasExited: Promise<void>;
  stop(): Promise<void>;
}

function run(program: Program, folder: string): Running {
  const script = fileURLToPath(new URL('./process-supervisor.mjs', import.meta.url));
  const supervisor = spawn(process.execPath, [script, JSON.stringify({ ...program, cwd: folder })], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  const hasExited = new Promise<void>((resolve) => supervisor.once('exit', () => resolve()));
  return {
    hasExited,
    async stop() {
      supervisor.stdin?.end();
      await hasExited;
    },
  };
}

async function untilListening(port: number): Promise<void> {
  for (;;) {
    const isListening = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => socket.end(() => resolve(true)));
      socket.once('error', () => resolve(false));
    });
    if (isListening) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
