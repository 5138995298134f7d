// Holds the code to the rooms of ARCHITECTURE.md: who may import whom, no cycle, and where a few things may stand.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What each room may import besides itself. An entry with a slash names one file of a room, or a sub-room of one. */
export const ROOMS = {
  base: [],
  model: ['base'],
  codec: ['base', 'model'],
  sql: ['base'],
  store: ['base', 'model', 'sql'],
  control: ['base', 'model', 'codec', 'store'],
  engine: ['base', 'model', 'codec', 'store', 'control'],
  datasource: ['base', 'model', 'codec', 'sql', 'engine/plugin', 'store/postgres/pg-session'],
  receiver: ['base', 'model', 'codec', 'sql', 'engine/plugin', 'store/postgres/pg-session'],
  telemetry: ['base', 'model', 'codec', 'sql', 'engine/plugin'],
  outbox: [
    'base',
    'model',
    'codec',
    'sql',
    'engine/plugin',
    'datasource/driver',
    'datasource/failures',
    'receiver/http/webhook',
    'store/partitions',
    'store/postgres/pg-session',
  ],
  client: ['base', 'model', 'codec', 'sql', 'store', 'control', 'facade/workflow-queue'],
  facade: ['engine', 'control', 'codec', 'model', 'base', 'datasource', 'receiver', 'telemetry', 'outbox', 'admin'],
  admin: ['base', 'model', 'control', 'client', 'store', 'outbox'],
  cli: ['base', 'model', 'control', 'client', 'store', 'outbox', 'admin'],
};

/** Sub-rooms that another room may import. They import nothing else of their own room, which would come along. */
const SHARED_SUBROOMS = ['store/partitions'];

/** The features that a room is divided by. Rooms use the same word for the same feature. */
const FEATURES = [
  'config',
  'history',
  'journal',
  'listing',
  'liveness',
  'management',
  'messaging',
  'notify',
  'outbox',
  'parking',
  'queues',
  'receiving',
  'registration',
  'runs',
  'schedules',
  'transactions',
  'writer',
];

/** Sub-rooms that only one room has. */
const OWN_SUBROOMS = {
  model: ['cron', 'errors', 'validation'],
  store: ['migrations', 'partitions', 'postgres', 'sqlite'],
  datasource: ['adapters'],
  receiver: ['adapters', 'http'],
  outbox: ['schema', 'publish', 'consume', 'dead-letters', 'relays', 'retention', 'validate'],
  admin: ['changes', 'dashboard', 'http', 'metrics', 'routes', 'views'],
  cli: ['commands', 'dashboard', 'project'],
};

const ENVIRONMENT_ALLOWED = [/^engine\/config\/config\.ts$/, /^cli\//];
/** A `let`, or a collection that is filled later, at the top level of a module. */
const MODULE_STATE = /^(?:export )?(?:let |const \w+(?:: [^=]+)? = new (?:Map|Set|WeakMap|WeakSet|Array)\b[^;]*\(\);)/m;
const MODULE_STATE_ALLOWED = [/^engine\/runs\/(?:ambient|stop-reasons)\.ts$/, /^facade\//];

/** All violations in the source folder, as sentences. */
export function findViolations(sourceFolder) {
  const files = listFiles(sourceFolder);
  const imported = new Map(files.map((file) => [file, readImports(sourceFolder, file, { types: false })]));
  const withTypes = new Map(files.map((file) => [file, readImports(sourceFolder, file)]));
  return [
    ...files.flatMap((file) => roomViolations(file, withTypes.get(file))),
    ...files.flatMap((file) => subroomViolations(file)),
    ...files.flatMap((file) => contentViolations(sourceFolder, file)),
    ...cycles(imported),
  ];
}

function listFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .map((name) => String(name).replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.ts'));
}

/** The files that a file imports. Types alone are no dependency at run time. */
function readImports(sourceFolder, file, { types = true } = {}) {
  const whole = readFileSync(join(sourceFolder, file), 'utf8');
  const text = types ? whole : whole.replace(/^(?:import|export) type [^;]*;/gm, '');
  return [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, target]) =>
    relative(sourceFolder, resolve(sourceFolder, dirname(file), target))
      .replaceAll('\\', '/')
      .replace(/\.js$/, '.ts'),
  );
}

function roomViolations(file, targets) {
  const room = roomOf(file);
  // Files at the root of the source folder are the package's entry points.
  if (room === undefined) return [];
  const allowed = ROOMS[room];
  if (!allowed) return [`${file}: "${room}" is no room of the architecture`];
  return targets
    .filter((target) => {
      const names = [roomOf(target), dirname(target), target.replace(/\.ts$/, '')];
      const isOwn = SHARED_SUBROOMS.includes(dirname(file)) ? names[1] === dirname(file) : names[0] === room;
      return !isOwn && !allowed.some((name) => names.includes(name));
    })
    .map((target) => `${file} may not import ${target}`);
}

function subroomViolations(file) {
  const [room, ...folders] = dirname(file).split('/');
  if (folders.length === 0) return [];
  const known = [...FEATURES, ...(OWN_SUBROOMS[room] ?? [])];
  if (folders.length === 1 && known.includes(folders[0])) return [];
  return [`${file}: "${folders.join('/')}" is no sub-room of "${room}"`];
}

function contentViolations(sourceFolder, file) {
  const text = readFileSync(join(sourceFolder, file), 'utf8');
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  const violations = [];
  if (/process\.env/.test(code) && !ENVIRONMENT_ALLOWED.some((pattern) => pattern.test(file))) {
    violations.push(`${file} reads process.env; only engine/config/config.ts and cli/ may`);
  }
  if (MODULE_STATE.test(code) && !MODULE_STATE_ALLOWED.some((pattern) => pattern.test(file))) {
    violations.push(`${file} keeps mutable state at module level`);
  }
  if (/\bexport default\b/.test(code)) violations.push(`${file} has a default export`);
  return violations;
}

function roomOf(file) {
  return file.includes('/') ? file.split('/')[0] : undefined;
}

function cycles(imports) {
  const found = [];
  const done = new Set();
  const visit = (file, path) => {
    if (path.includes(file)) {
      found.push(`import cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`);
      return;
    }
    if (done.has(file)) return;
    for (const target of imports.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
  return found;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const violations = findViolations(fileURLToPath(new URL('../src', import.meta.url)));
  for (const violation of violations) console.error(violation);
  process.exit(violations.length === 0 ? 0 : 1);
}
