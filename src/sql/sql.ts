// The `sql` tag. A statement is written once; what differs between the dialects is a token that is rendered
// late. Interpolated plain values become bound parameters, never text.
//
// A statement is rendered in two parts. Its text depends only on its shape (the place in the code where it stands, and
// which tokens it has there) and is kept; its parameters are collected each time.
import { createHash } from 'node:crypto';
import type { JSONObject } from './matching.js';

/** A value that every driver can bind. */
export type Value = string | number | bigint | boolean | null | Uint8Array;

/** The types that columns and bound lists have, by their SQL meaning. */
export type ColumnType = 'text' | 'int' | 'bigint' | 'float' | 'bool' | 'json' | 'numeric';

/** A column of a `rows` list. */
export interface RowColumn {
  readonly name: string;
  readonly type: ColumnType;
}

export type Rows = readonly (readonly Value[])[];

export type LockMode = 'share' | 'update' | 'skip';

/** Writes the text of a statement. */
export interface TextWriter {
  readonly dialect: Dialect;
  text(text: string): void;
  /** Writes the placeholder of the next parameter. */
  placeholder(): void;
}

/** What the two dialects write differently. A `write…` puts as many placeholders as its `collect…` gives values. */
export interface Dialect {
  readonly name: 'postgres' | 'sqlite';
  /** Texts of statements by the place in the code where they stand, and by shape. */
  readonly texts: WeakMap<readonly string[], Map<string, string>>;
  /** The placeholder of parameter number `index` (from 1). */
  placeholder(index: number): string;
  /** The qualified, quoted name of a table of the system database. */
  table(name: string): string;
  /** The database clock in epoch milliseconds, or a parameter when a test drives the clock. */
  writeNow(out: TextWriter): void;
  collectNow(values: Value[]): void;
  /** `= any of values`, with one parameter however many there are. */
  writeOneOf(out: TextWriter, type: ColumnType): void;
  collectOneOf(values: Value[], list: readonly Value[], type: ColumnType): void;
  /** A table of literal rows named `alias`. One row is written differently from many. */
  writeRows(out: TextWriter, alias: string, columns: readonly RowColumn[], isSingle: boolean): void;
  collectRows(values: Value[], columns: readonly RowColumn[], data: Rows): void;
  /** Waits for the turn of the name that is collected; held until the commit. */
  writeAdvisoryLock(out: TextWriter): void;
  collectAdvisoryLock(values: Value[], name: string): void;
  /** True where a column begins with the prefix that is collected. */
  writeStartsWith(out: TextWriter, column: string): void;
  collectStartsWith(values: Value[], prefix: string): void;
  /** True where the JSON of a column contains the pattern. */
  writeContains(out: TextWriter, column: string, pattern: JSONObject): void;
  collectContains(values: Value[], pattern: JSONObject): void;
  /** The JSON of a column with some members changed. */
  writeMerge(out: TextWriter, column: string, change: JSONObject): void;
  collectMerge(values: Value[], change: JSONObject): void;
  /** Whether the database has no statistics to choose an index by, and is told which one to use. */
  readonly needsIndexHints: boolean;
  /** Says by which index a table of a FROM is read, after its alias. */
  indexHint(name: string): string;
  /** A row lock at the end of a SELECT; nothing where the writer holds the whole database. */
  lock(mode: LockMode, alias: string): string;
}

/** A part of a statement that is not a plain parameter. */
export interface Token {
  /** Two tokens of the same shape have the same text in a dialect. */
  readonly shape: string;
  write(out: TextWriter): void;
  collect(values: Value[], dialect: Dialect): void;
}

/** Texts that are kept for one place in the code. Most places have one or two; a query of users' has any number. */
const SHAPES_MAX = 500;

const collectNothing = (): void => {};

/** A short stand-in for a text, fit to be compared many times. */
function digest(text: string): string {
  return `${createHash('sha256').update(text).digest('base64url').slice(0, 20)};`;
}

/** A statement or fragment: literal text with parameters, tokens and nested fragments in between. */
export class Sql implements Token {
  /** The shape of the parts alone; the place in the code stands for the literal text. */
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
    this.#shape ??= digest(this.strings.join('?') + this.partsShape);
    return this.#shape;
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

/** Text that is the same in both dialects. Never for anything that comes from outside. */
function literal(text: string): Token {
  return { shape: digest(text), write: (out) => out.text(text), collect: collectNothing };
}

/**
 * Quoted strings, separated by commas: constants of ours that must be part of the text, because the planner matches them
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

/** Quoted identifiers, separated by commas, each qualified by the alias if there is one. */
export function idents(names: readonly string[], alias?: string): Token {
  const prefix = alias === undefined ? '' : `${quoteIdentifier(alias)}.`;
  return literal(names.map((name) => prefix + quoteIdentifier(name)).join(', '));
}

/** A select list in which JSON comes as text, as it does in SQLite anyway. */
export function selectList(columns: readonly RowColumn[], alias: string): Token {
  return columnList(columns, `${quoteIdentifier(alias)}.`);
}

/** The same for RETURNING, which takes no alias in SQLite. */
export function returningList(columns: readonly RowColumn[]): Token {
  return columnList(columns, '');
}

function columnList(columns: readonly RowColumn[], prefix: string): Token {
  const items = columns.map(({ name, type }) => {
    const column = prefix + quoteIdentifier(name);
    return type === 'json' ? `CAST(${column} AS TEXT) AS ${quoteIdentifier(name)}` : column;
  });
  return literal(items.join(', '));
}

/** The database's clock, in epoch milliseconds. */
export const nowMs: Token = {
  shape: 'now;',
  write: (out) => out.dialect.writeNow(out),
  collect: (values, dialect) => dialect.collectNow(values),
};

/** `column ${oneOf(ids)}`: true for a row whose column is one of the values. */
export function oneOf(list: readonly Value[], type: ColumnType = 'text'): Token {
  return {
    shape: `any:${type};`,
    write: (out) => out.dialect.writeOneOf(out, type),
    collect: (values, dialect) => dialect.collectOneOf(values, list, type),
  };
}

/** A FROM item with literal rows: `FROM ${rows('r', columns, data)}`. The columns are the same at each call. */
export function rows(alias: string, columns: readonly RowColumn[], data: Rows): Token {
  return {
    shape: data.length === 1 ? `row:${alias};` : `rows:${alias};`,
    write: (out) => out.dialect.writeRows(out, alias, columns, data.length === 1),
    collect: (values, dialect) => dialect.collectRows(values, columns, data),
  };
}

/** Locks the selected rows of the table with that alias: `FOR SHARE`, `FOR UPDATE`, or one that skips what is locked. */
export function lock(mode: LockMode, alias: string): Token {
  return {
    shape: `lock:${mode}:${alias};`,
    write: (out) => out.text(out.dialect.lock(mode, alias)),
    collect: collectNothing,
  };
}

/**
 * `SELECT ${advisoryLock(name)}`: whoever commits with the same name waits here until this commit is through. The statements
 * after it see all that those before have done. Nothing where the writer holds the whole database.
 */
export function advisoryLock(name: string): Token {
  return {
    shape: 'advisory-lock;',
    write: (out) => out.dialect.writeAdvisoryLock(out),
    collect: (values, dialect) => dialect.collectAdvisoryLock(values, name),
  };
}

/** The index by which the table before it is read, in a dialect that is told; elsewhere the planner knows better. */
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
