// Writes a new project from the templates of the package. A template is a list of folders whose files are copied one over
// the other; what depends on the database comes last. Asks and prints nothing.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { LIBRARY_VERSION } from '../../../kernel/base/version.js';
import { CommandFailure } from '../failure.js';

export const TEMPLATES = ['script', 'express', 'hono', 'fastify', 'next', 'nest'] as const;
export const DATABASES = ['sqlite', 'postgres'] as const;

export type Template = (typeof TEMPLATES)[number];
export type ProjectDatabase = (typeof DATABASES)[number];

export interface ProjectSpec {
  /** Absolute. Created if it does not exist. */
  readonly folder: string;
  readonly template: Template;
  readonly database: ProjectDatabase;
  /** This Node has no SQLite of its own. */
  readonly needsSqliteLibrary: boolean;
}

interface Manifest {
  dependencies?: Record<string, string>;
}

const LAYERS: Readonly<Record<Template, readonly string[]>> = {
  script: ['project', 'functions', 'script'],
  express: ['project', 'functions', 'express'],
  hono: ['project', 'functions', 'hono'],
  fastify: ['project', 'functions', 'fastify'],
  next: ['functions', 'next'],
  nest: ['project', 'nest'],
};
/** The name in the templates, which are code that compiles. */
const PLACEHOLDER = 'everstep-app';
const SQLITE_LIBRARY = { 'better-sqlite3': '^12.8.0' };

/** Returns the names of the files that it has written. */
export function generateProject(spec: ProjectSpec): readonly string[] {
  refuseFilled(spec.folder);
  const files = new Map<string, string>();
  for (const layer of [...LAYERS[spec.template], `databases/${spec.database}`]) addLayer(files, layer);
  files.set('package.json', manifestOf(files.get('package.json') ?? '{}', spec));
  const name = projectName(spec.folder);
  for (const [path, text] of files) {
    const target = join(spec.folder, path);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, withName(text, name));
  }
  return [...files.keys()].sort();
}

function refuseFilled(folder: string): void {
  const found = listFolder(folder).filter((name) => name !== '.git');
  if (found.length === 0) return;
  const [first = ''] = found;
  throw new CommandFailure(
    `"${folder}" is not empty: it has "${first}". Nothing was written. Name a new folder, as in: everstep init my-app`,
  );
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new CommandFailure(`Cannot create a project in "${folder}": ${(error as Error).message}`);
  }
}

function addLayer(files: Map<string, string>, layer: string): void {
  const from = join(templatesFolder(), layer);
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const source = join(entry.parentPath, entry.name);
    const path = source.slice(from.length + 1).replaceAll('\\', '/');
    const text = readFileSync(source, 'utf8');
    // npm leaves out a file named .gitignore, and the database has a line for the end of the README.
    if (path === 'gitignore') files.set('.gitignore', text);
    else files.set(path, path === 'README.md' ? (files.get(path) ?? '') + text : text);
  }
}

function templatesFolder(): string {
  const manifest = createRequire(import.meta.url).resolve('everstep/package.json');
  return join(dirname(manifest), 'templates');
}

function manifestOf(text: string, { database, needsSqliteLibrary }: ProjectSpec): string {
  const manifest = JSON.parse(text) as Manifest;
  const dependencies = {
    ...manifest.dependencies,
    ...(database === 'sqlite' && needsSqliteLibrary && SQLITE_LIBRARY),
    everstep: `^${LIBRARY_VERSION}`,
  };
  const sorted = Object.entries(dependencies).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify({ ...manifest, dependencies: Object.fromEntries(sorted) }, null, 2)}\n`;
}

/** The folder's name as npm allows it. */
function projectName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '');
  return name === '' ? PLACEHOLDER : name;
}

/** The names of databases have underscores, which need no quotes in SQL. */
function withName(text: string, name: string): string {
  return text.replaceAll(PLACEHOLDER, name).replaceAll(PLACEHOLDER.replace('-', '_'), name.replaceAll('-', '_'));
}
