// Writes the migrations of `migrations/` into `src/database/migrations/embedded.ts`, so that a bundled application
// carries them and no file has to be found at run time. The file is not in the repository.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TARGET = 'src/database/migrations/embedded.ts';

const FOLDERS = [
  ['POSTGRES_MIGRATIONS', 'migrations/postgres'],
  ['POSTGRES_EVERSTEP_MIGRATIONS', 'migrations/postgres/everstep'],
  ['SQLITE_MIGRATIONS', 'migrations/sqlite'],
  ['SQLITE_EVERSTEP_MIGRATIONS', 'migrations/sqlite/everstep'],
];

const HEADER = `// Generated from \`migrations/\` by \`scripts/generate.mjs\`.
import type { Migration } from './migration.js';
`;

function readMigrations(folder) {
  const files = readdirSync(`${ROOT}/${folder}`).filter((file) => file.endsWith('.sql'));
  const migrations = files.sort().map((file) => {
    const [, digits, name] = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file) ?? [];
    if (name === undefined) throw new Error(`${folder}/${file}: name it NNNN_name.sql`);
    const sql = readFileSync(`${ROOT}/${folder}/${file}`, 'utf8');
    return { number: Number(digits), name, sql, isOnline: /^-- online$/m.test(sql) };
  });
  migrations.forEach(({ number }, index) => {
    if (number === migrations[index - 1]?.number) throw new Error(`${folder}: number ${number} is used twice`);
  });
  return migrations;
}

/** Both dialects use one name for a number, so that a version means the same everywhere. */
function refuseDifferentNames(left, right) {
  const names = new Map(left.map(({ number, name }) => [number, name]));
  for (const { number, name } of right) {
    const other = names.get(number);
    if (other !== name) throw new Error(`migration ${number} is "${name}" for SQLite and "${other}" for Postgres`);
  }
}

function literal(text) {
  return `\`${text.replace(/[\\`]|\$(?=\{)/g, '\\$&')}\``;
}

function entry({ number, name, sql, isOnline }) {
  return `  {\n    number: ${number},\n    name: '${name}',\n    isOnline: ${isOnline},\n    sql: ${literal(sql)},\n  },\n`;
}

const lists = FOLDERS.map(([constant, folder]) => ({ constant, migrations: readMigrations(folder) }));
refuseDifferentNames(lists[0].migrations, lists[2].migrations);
refuseDifferentNames(lists[1].migrations, lists[3].migrations);
const text = [
  HEADER,
  ...lists.map(
    ({ constant, migrations }) =>
      `export const ${constant}: readonly Migration[] = [\n${migrations.map(entry).join('')}];\n`,
  ),
].join('\n');

// Tests that run meanwhile in other processes read the file: leave it alone if nothing has changed.
const path = `${ROOT}/${TARGET}`;
if (!existsSync(path) || readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
