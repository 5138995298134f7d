// Holds the code to the layers of ARCHITECTURE.md. A layer follows from the kind of a file: its top folder, or the suffix of
// its name where the files of a feature stand together.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The layer of a file. The first match counts. */
const KINDS = [
  [/^kernel\/base\//, 'base'],
  [/^kernel\//, 'kernel'],
  [/^database\/partitions\//, 'partitions'],
  [/^database\//, 'database'],
  [/\.sql\.ts$|^run\/(?:rows|writer)\//, 'rows'],
  [/\.run\.ts$|^run\//, 'run'],
  [/\.http\.ts$|^faces\/http\//, 'http'],
  [/\.cli\.ts$|^faces\/cli\//, 'cli'],
  [/^(?:features|operator)\//, 'verbs'],
  [/^plugins\/transaction\//, 'transaction'],
  [/^plugins\/receiver\//, 'receiver'],
  [/^plugins\/outbox\//, 'outbox'],
  [/^plugins\/telemetry\//, 'telemetry'],
  [/^faces\/client\//, 'client'],
  [/^faces\/library\//, 'library'],
];

const PURE = ['base', 'kernel', 'pure'];
const STORE = [...PURE, 'partitions', 'database', 'rows'];

/** What each layer may import besides itself. An entry with a slash names one file. */
const ALLOWED = {
  base: [],
  kernel: ['base'],
  /** A file of a feature that imports nothing but the kernel: records, checks, settings. */
  pure: ['base', 'kernel'],
  partitions: PURE,
  database: [...STORE],
  rows: [...STORE],
  verbs: [...STORE],
  run: [...STORE, 'verbs'],
  transaction: [...PURE, 'run/plugin', 'database/postgres/pg-session'],
  receiver: [...PURE, 'run/plugin', 'database/postgres/pg-session'],
  telemetry: [...PURE, 'run/plugin'],
  outbox: [
    ...PURE,
    'partitions',
    'run/plugin',
    'database/postgres/pg-session',
    'plugins/transaction/driver',
    'plugins/transaction/failures',
    'plugins/receiver/http/webhook',
  ],
  client: [...STORE, 'verbs', 'faces/library/workflow-queue'],
  http: [...STORE, 'verbs', 'client', 'outbox'],
  cli: [...STORE, 'verbs', 'client', 'outbox', 'http'],
  library: [...PURE, 'verbs', 'run', 'transaction', 'receiver', 'telemetry', 'outbox', 'http'],
};

const ENVIRONMENT_ALLOWED = [/^run\/config\/config\.ts$/, /\.cli\.ts$/, /^faces\/cli\//];
/** A `let`, or a collection that is filled later, at the top level of a module. */
const MODULE_STATE = /^(?:export )?(?:let |const \w+(?:: [^=]+)? = new (?:Map|Set|WeakMap|WeakSet|Array)\b[^;]*\(\);)/m;
const MODULE_STATE_ALLOWED = [/^run\/ambient\.ts$/, /^faces\/library\//];

/** All violations in the source folder, as sentences. */
export function findViolations(sourceFolder) {
  const files = listFiles(sourceFolder);
  const atRunTime = new Map(files.map((file) => [file, readImports(sourceFolder, file, { types: false })]));
  const withTypes = new Map(files.map((file) => [file, readImports(sourceFolder, file)]));
  const layerOf = layers(withTypes);
  return [
    ...files.flatMap((file) => layerViolations(file, withTypes.get(file), layerOf)),
    ...files.flatMap((file) => contentViolations(sourceFolder, file)),
    ...cycles(atRunTime),
  ];
}

/** The layer of a file by its path alone; undefined for an entry point of the package. */
export function kindOf(file) {
  return KINDS.find(([pattern]) => pattern.test(file))?.[1];
}

/** Finds the layer of a file: that of its kind, or `pure` where a file among the verbs imports none of them. */
function layers(imports) {
  const known = new Map();
  const layerOf = (file) => {
    const found = known.get(file);
    if (found) return found;
    const kind = kindOf(file);
    known.set(file, kind);
    if (kind === 'verbs' && (imports.get(file) ?? []).every((target) => PURE.includes(layerOf(target)))) {
      known.set(file, 'pure');
    }
    return known.get(file);
  };
  return layerOf;
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

function layerViolations(file, targets, layerOf) {
  // Files at the root of the source folder are the package's entry points.
  if (!file.includes('/')) return [];
  const layer = layerOf(file);
  if (!layer) return [`${file} belongs to no layer of the architecture`];
  const allowed = ALLOWED[layer];
  return targets
    .filter((target) => layerOf(target) !== layer)
    .filter((target) => !allowed.includes(layerOf(target)) && !allowed.includes(target.replace(/\.ts$/, '')))
    .map((target) => `${file} (${layer}) may not import ${target} (${layerOf(target)})`);
}

function contentViolations(sourceFolder, file) {
  const text = readFileSync(join(sourceFolder, file), 'utf8');
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  const violations = [];
  if (/process\.env/.test(code) && !ENVIRONMENT_ALLOWED.some((pattern) => pattern.test(file))) {
    violations.push(`${file} reads process.env; only run/config/config.ts and the command line may`);
  }
  if (MODULE_STATE.test(code) && !MODULE_STATE_ALLOWED.some((pattern) => pattern.test(file))) {
    violations.push(`${file} keeps mutable state at module level`);
  }
  if (/\bexport default\b/.test(code)) violations.push(`${file} has a default export`);
  return violations;
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
