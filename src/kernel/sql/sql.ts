// The `sql` tag. A statement is written once for both dialects; what differs between them is a token, rendered late.
// Interpolated plain values become bound parameters, never text.
//
// A statement's text depends only on its shape (its location in the code and the tokens in it) and is cached. Only the
// parameters are collected for each use.
import { createHash } from 'node:crypto';
import type { JSONObject } from './matching.js';

/** A value that every driver can bind. */
export type Value = string | number | bigint | boolean | null | Uint8Array;

/** Types of columns and bound lists. */
export type ColumnType = 'text' | 'int' | 'bigint' | 'float' | 'bool' | 'json' | 'numeric';

/** A column of a `rows` list. */
export interface RowColumn {
  readonly name: string;
  readonly type: ColumnType;
}

export type Rows = readonly (readonly Value[])[];

/** `skip-keyed` also skips, and keeps out, commits that insert rows with a foreign key to the row. */
export type LockMode = 'share' | 'update' | 'skip' | 'skip-keyed';

/** Builds the text of a statement. */
export interface TextWriter {
  readonly dialect: Dialect;
  text(text: string): void;
  /** Writes the placeholder of the next parameter. */
  placeholder(): void;
}

/** What differs between the dialects. Each `write…` emits as many placeholders as its `collect…` adds values. */
export interface Dialect {
  readonly name: 'postgres' | 'sqlite';
  /** Cached texts of statements, by location in the code and shape. */
  readonly texts: WeakMap<readonly string[], Map<string, string>>;
  /** The placeholder of parameter `index`, from 1. */
  placeholder(index: number): string;
  /** The qualified, quoted name of a table of the system database. */
  table(name: string): string;
  /** What a database lacks that another library has created. Set before the first statement that uses it. */
  lacking?: Lacking;
  /** What the server refuses to store. Set before the first statement that relies on it. */
  refused?: ReadonlySet<StoredCode>;
  /** The database clock in epoch milliseconds, or a parameter if a test controls the clock. */
  writeNow(out: TextWriter): void;
  collectNow(values: Value[]): void;
  /** `= any of the values`, with one parameter for any number of them. */
  writeOneOf(out: TextWriter, type: ColumnType): void;
  collectOneOf(values: Value[], list: readonly Value[], type: ColumnType): void;
  /** A table of literal rows named `alias`. A single row has a form of its own. */
  writeRows(out: TextWriter, alias: string, columns: readonly RowColumn[], isSingle: boolean): void;
  collectRows(values: Value[], columns: readonly RowColumn[], data: Rows): void;
  /** Takes the advisory lock of the collected name, until the commit; a shared one beside others of its kind. */
  writeAdvisoryLock(out: TextWriter, isShared: boolean): void;
  collectAdvisoryLock(values: Value[], name: string): void;
  /** True if the column starts with the collected prefix. */
  writeStartsWith(out: TextWriter, column: string): void;
  collectStartsWith(values: Value[], prefix: string): void;
  /** True if the column's JSON contains the pattern. */
  writeContains(out: TextWriter, column: string, pattern: JSONObject): void;
  collectContains(values: Value[], pattern: JSONObject): void;
  /** The column's JSON object, merged with the change. */
  writeMerge(out: TextWriter, column: string, change: JSONObject): void;
  collectMerge(values: Value[], change: JSONObject): void;
  /** The column, compared byte by byte whatever the database's collation. */
  bytewise(column: string): string;
  /** Whether the planner lacks statistics and must be told which index to use. */
  readonly needsIndexHints: boolean;
  /** Names the index to use, after the alias of a table in FROM. */
  indexHint(name: string): string;
  /** Whether a statement can change settings of the server. */
  readonly hasSettings: boolean;
  /** A row lock at the end of a SELECT; empty where a writer locks the whole database. */
  lock(mode: LockMode, alias: string): string;
}

/** Code that the server runs. */
export type StoredCode = 'triggers' | 'functions';

/** Tables, each with an empty one to read instead, and columns. */
export interface Lacking {
  readonly tables: ReadonlyMap<string, string>;
  readonly columns: ReadonlySet<string>;
}

/** A part of a statement other than a plain parameter. */
export interface Token {
  /** Tokens of the same shape have the same text in a dialect. */
  readonly shape: string;
  write(out: TextWriter): void;
  collect(values: Value[], dialect: Dialect): void;
}

/** Cached texts per location in the code. Most have one or two; ad-hoc queries have any number. */
const SHAPES_MAX = 500;

const collectNothing = (): void => {};

/** A short hash of a text, cheap to compare. */
function digest(text: string): string {
  return `${createHash('sha256').update(text).digest('base64url').slice(0, 20)};`;
}

/** A statement or fragment: literal text with parameters, tokens and nested fragments in between. */
export class Sql implements Token {
  /** By location in the code and the shape of the parts. */
  static readonly #shapes = new WeakMap<readonly string[], Map<string, string>>();

  /** The shape of the parts alone; the location in the code implies the literal text. */
  readonly partsShape: string;
  #shape: string | undefined;

  constructor(
    readonly strings: readonly string[],
    readonly parts: readonly (Value | Token)[],
  ) {
    let shape = '';
    for (const part of parts) shape += isToken(part) ? part.shape : '?';
    this.partsShape = shape;
  }

  get shape(): string {
    return (this.#shape ??= this.#findShape());
  }

  #findShape(): string {
    let shapes = Sql.#shapes.get(this.strings);
    if (!shapes) Sql.#shapes.set(this.strings, (shapes = new Map<string, string>()));
    let shape = shapes.get(this.partsShape);
    if (shape === undefined) {
      shape = digest(this.strings.join('?') + this.partsShape);
      if (shapes.size >= SHAPES_MAX) shapes.clear();
      shapes.set(this.partsShape, shape);
    }
    return shape;
  }

  write(out: TextWriter): void {
    this.strings.forEach((text, index) => {
      if (index > 0) {
        const part = this.parts[index - 1];
        if (isToken(part)) part.write(out);
        else out.placeholder();
      }
      out.text(text);
    });
  }

  collect(values: Value[], dialect: Dialect): void {
    for (const part of this.parts) {
      if (isToken(part)) part.collect(values, dialect);
      else values.push(part);
    }
  }
}

function isToken(part: unknown): part is Token {
  return typeof part === 'object' && part !== null && 'shape' in part;
}

export function sql(strings: TemplateStringsArray, ...parts: (Value | Token | undefined)[]): Sql {
  for (let index = 0; index < parts.length; index += 1) parts[index] ??= null;
  return new Sql(strings, parts as (Value | Token)[]);
}

/** Text that is the same in both dialects. Never for input from outside. */
function literal(text: string): Token {
  return { shape: digest(text), write: (out) => out.text(text), collect: collectNothing };
}

/**
 * Quoted strings, separated by commas. For constants that must be part of the text, so that the planner can match them
 * with the condition of a partial index.
 */
export function textConstants(texts: readonly string[]): Token {
  return literal(texts.map((text) => `'${text.replaceAll("'", "''")}'`).join(', '));
}

/** The qualified name of a system table. */
export function table(name: string): Token {
  return { shape: `t:${name};`, write: (out) => out.text(out.dialect.table(name)), collect: collectNothing };
}

/** A quoted identifier. */
export function ident(name: string): Token {
  return literal(quoteIdentifier(name));
}

/** Quoted identifiers, separated by commas, qualified by the alias if there is one. */
export function idents(names: readonly string[], alias?: string): Token {
  const prefix = alias === undefined ? '' : `${quoteIdentifier(alias)}.`;
  return list(names, (name, lacking) => (lacking?.columns.has(name) ? undefined : prefix + quoteIdentifier(name)));
}

/** A select list. JSON comes as text, as it does in SQLite. */
export function selectList(columns: readonly RowColumn[], alias: string): Token {
  return columnList(columns, `${quoteIdentifier(alias)}.`);
}

/** The same for RETURNING, where SQLite allows no alias. */
export function returningList(columns: readonly RowColumn[]): Token {
  return columnList(columns, '');
}

function columnList(columns: readonly RowColumn[], prefix: string): Token {
  return list(columns, ({ name, type }, lacking) => {
    const column = prefix + quoteIdentifier(name);
    if (lacking?.columns.has(name)) return `NULL AS ${quoteIdentifier(name)}`;
    return type === 'json' ? `CAST(${column} AS TEXT) AS ${quoteIdentifier(name)}` : column;
  });
}

/** Items separated by commas, without those that the database lacks. */
function list<T>(items: readonly T[], toText: (item: T, lacking: Lacking | undefined) => string | undefined): Token {
  const textFor = (lacking: Lacking | undefined): string =>
    items
      .map((item) => toText(item, lacking))
      .filter((text) => text !== undefined)
      .join(', ');
  const complete = textFor(undefined);
  return {
    shape: digest(complete),
    write: (out) => out.text(out.dialect.lacking ? textFor(out.dialect.lacking) : complete),
    collect: collectNothing,
  };
}

/** Text that depends on whether the database lacks a column. */
export function ifLacking(
  column: string,
  { then, otherwise }: { readonly then: string; readonly otherwise: string },
): Token {
  return {
    shape: digest(otherwise),
    write: (out) => out.text(out.dialect.lacking?.columns.has(column) ? then : otherwise),
    collect: collectNothing,
  };
}

/** The database clock in epoch milliseconds. */
export const nowMs: Token = {
  shape: 'now;',
  write: (out) => out.dialect.writeNow(out),
  collect: (values, dialect) => dialect.collectNow(values),
};

/**
 * The same, read once per statement. To compare an indexed column with: Postgres does not search an index for a value that
 * may differ from row to row, but reads all of it.
 */
export const searchableNowMs: Sql = sql`(SELECT ${nowMs})`;

/** `column ${oneOf(ids)}`: true if the column is one of the values. */
export function oneOf(list: readonly Value[], type: ColumnType = 'text'): Token {
  return {
    shape: `any:${type};`,
    write: (out) => out.dialect.writeOneOf(out, type),
    collect: (values, dialect) => dialect.collectOneOf(values, list, type),
  };
}

/**
 * A FROM item with literal rows: `FROM ${rows('r', columns, data)}`. A location may pass different
 * lists of columns only if they differ in length.
 */
export function rows(alias: string, columns: readonly RowColumn[], data: Rows): Token {
  return {
    shape: `${data.length === 1 ? 'row' : 'rows'}:${alias}:${columns.length};`,
    write: (out) => out.dialect.writeRows(out, alias, columns, data.length === 1),
    collect: (values, dialect) => dialect.collectRows(values, columns, data),
  };
}

/** Locks the selected rows of the table `alias`: `FOR SHARE`, `FOR UPDATE`, or an update lock with SKIP LOCKED. */
export function lock(mode: LockMode, alias: string): Token {
  return {
    shape: `lock:${mode}:${alias};`,
    write: (out) => out.text(out.dialect.lock(mode, alias)),
    collect: collectNothing,
  };
}

/**
 * `SELECT ${advisoryLock(name)}`: takes an advisory lock until the commit. Statements after it in the transaction see what
 * earlier holders committed. NULL in SQLite, where a writer locks the whole database.
 */
export function advisoryLock(name: string, { isShared = false } = {}): Token {
  return {
    shape: isShared ? 'shared-advisory-lock;' : 'advisory-lock;',
    write: (out) => out.dialect.writeAdvisoryLock(out, isShared),
    collect: (values, dialect) => dialect.collectAdvisoryLock(values, name),
  };
}

/** `SELECT ${setting('lock_timeout', '5000')}`: a setting of the server until the commit. NULL where there are none. */
export function setting(name: string, value: string): Token {
  return {
    shape: `setting:${name};`,
    write(out) {
      if (!out.dialect.hasSettings) return out.text('NULL');
      out.text(`set_config('${name}', `);
      out.placeholder();
      out.text(', TRUE)');
    },
    collect(values, { hasSettings }) {
      if (hasSettings) values.push(value);
    },
  };
}

/** A column that is compared and sorted byte by byte: some collations ignore punctuation. */
export function bytewise(column: string): Token {
  return {
    shape: `bytes:${column};`,
    write: (out) => out.text(out.dialect.bytewise(column)),
    collect: collectNothing,
  };
}

/** The index for the table before it, in a dialect that needs hints; empty in the other. */
export function indexedBy(name: string | undefined): Token {
  return {
    shape: `index:${name};`,
    write: (out) => out.text(name === undefined ? '' : out.dialect.indexHint(name)),
    collect: collectNothing,
  };
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export interface Rendered {
  readonly text: string;
  readonly values: readonly Value[];
}

/** The statement's text and parameters in a dialect. */
export function render(statement: Sql, dialect: Dialect): Rendered {
  const values: Value[] = [];
  statement.collect(values, dialect);
  return { text: textOf(statement, dialect), values };
}

function textOf(statement: Sql, dialect: Dialect): string {
  let byShape = dialect.texts.get(statement.strings);
  if (!byShape) dialect.texts.set(statement.strings, (byShape = new Map<string, string>()));
  const known = byShape.get(statement.partsShape);
  if (known !== undefined) return known;
  const text = writeText(statement, dialect);
  if (byShape.size >= SHAPES_MAX) byShape.clear();
  byShape.set(statement.partsShape, text);
  return text;
}

function writeText(statement: Sql, dialect: Dialect): string {
  let text = '';
  let parameters = 0;
  statement.write({
    dialect,
    text(part) {
      text += part;
    },
    placeholder() {
      parameters += 1;
      text += dialect.placeholder(parameters);
    },
  });
  return text;
}
