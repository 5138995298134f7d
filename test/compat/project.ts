// Projects of users: folders whose `node_modules` hold the built package and published ones. Those that require the
// package are copied, so that they find the one of the project; all others are links to what is installed here.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { buildPackage, root } from '../rig/built-package.js';

const installed = join(root, 'test/compat/node_modules');
const RUN_MS = 230_000;

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), 'everstep-project-'));

  /** `names` are those under which the package is installed, each as a copy of its own. */
  static async create(...names: string[]): Promise<Project> {
    if (!existsSync(installed)) throw new Error('Run: node scripts/install-compat.mjs');
    await buildPackage();
    const project = new Project();
    for (const name of names) project.#addPackage(name);
    return project;
  }

  #addPackage(name: string): void {
    const target = this.#moduleFolder(name);
    cpSync(join(root, 'dist'), join(target, 'dist'), { recursive: true, filter: (path) => !path.endsWith('.map') });
    cpSync(join(root, 'package.json'), join(target, 'package.json'));
    cpSync(join(root, 'templates'), join(target, 'templates'), { recursive: true });
    for (const dependency of ['better-sqlite3', 'pg']) {
      link(join(root, 'node_modules', dependency), join(target, 'node_modules', dependency));
    }
  }

  /** Adds a published package that requires ours. */
  addPlugin(name: string): void {
    const target = this.#moduleFolder(name);
    cpSync(join(installed, name), target, { recursive: true });
    const { dependencies, peerDependencies } = readJSON(join(target, 'package.json')) as Manifest;
    for (const dependency of Object.keys({ ...dependencies, ...peerDependencies })) {
      if (dependency.startsWith('@dbos-inc/')) continue;
      link(find(dependency), join(target, 'node_modules', dependency));
    }
  }

  /** Adds packages that do not. */
  addModules(...names: string[]): void {
    for (const name of names) link(find(name), this.#moduleFolder(name));
  }

  /** Makes the commands of the packages available to scripts of package.json. */
  addCommands(files: Readonly<Record<string, string>>): void {
    for (const [name, file] of Object.entries(files)) link(find(file), join(this.#moduleFolder('.bin'), name));
  }

  #moduleFolder(name: string): string {
    return join(this.folder, 'node_modules', name);
  }

  /** Writes files; objects as JSON. */
  write(files: Readonly<Record<string, string | object>>): void {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
    }
  }

  /** Resolves to what the command prints. `within` is a folder of the project. */
  async run(command: string, args: readonly string[], within = '.', environment: object = {}): Promise<string> {
    const { stdout } = await this.#execute(command, args, within, environment);
    return stdout;
  }

  /** Resolves to all output of a test runner: it reports on stderr. */
  async runTests(command: string, args: readonly string[], within: string): Promise<string> {
    const { stdout, stderr } = await this.#execute(command, args, within, {});
    return stdout + stderr;
  }

  async #execute(
    command: string,
    args: readonly string[],
    within: string,
    environment: object,
  ): Promise<{ stdout: string; stderr: string }> {
    try {
      const env = { ...process.env, NODE_ENV: 'test', ...environment };
      const options = { cwd: join(this.folder, within), timeout: RUN_MS, env };
      return await promisify(execFile)(command, [...args], options);
    } catch (error) {
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      throw new Error(`${command} ${args.join(' ')} failed.\n${stdout ?? ''}\n${stderr ?? ''}`, { cause: error });
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Where a development dependency is installed: for these tests, or for all. */
export function find(name: string): string {
  const own = join(installed, name);
  return existsSync(own) ? own : join(root, 'node_modules', name);
}

export function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

function readJSON(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'));
}
