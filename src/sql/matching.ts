// Tokens that look into a text or into JSON, which the two databases do in different ways.
import { quoteIdentifier, type Token } from './sql.js';

/** What JSON can express. */
export type JSONText = null | boolean | number | string | readonly JSONText[] | JSONObject;
export interface JSONObject {
  readonly [key: string]: JSONText;
}

export interface ColumnName {
  readonly alias?: string;
  readonly name: string;
  /** The text of the column is compared without any index of it. */
  readonly isHidden?: boolean;
}

function columnText({ alias, name, isHidden = false }: ColumnName): string {
  const text = alias === undefined ? quoteIdentifier(name) : `${quoteIdentifier(alias)}.${quoteIdentifier(name)}`;
  return isHidden ? `(${text} || '')` : text;
}

/** True where the column begins with the prefix, which has no special characters. It can ride an index. */
export function startsWith(column: ColumnName, prefix: string): Token {
  return {
    shape: `starts:${columnText(column)};`,
    write: (out) => out.dialect.writeStartsWith(out, columnText(column)),
    collect: (values, dialect) => dialect.collectStartsWith(values, prefix),
  };
}

/**
 * True where the JSON of the column contains the pattern, as `@>` of Postgres has it: an object contains one with some of
 * its members, an array one with some of its elements in any order, and so on inside.
 */
export function containsJSON(column: ColumnName, pattern: JSONObject): Token {
  return {
    shape: `contains:${columnText(column)}:${shapeOf(pattern)};`,
    write: (out) => out.dialect.writeContains(out, columnText(column), pattern),
    collect: (values, dialect) => dialect.collectContains(values, pattern),
  };
}

/** The JSON object of the column with the members of the change in place of its own; null takes a member out. */
export function mergeJSON(column: ColumnName, change: JSONObject): Token {
  const removed = Object.values(change).map((value) => (value === null ? '-' : '+'));
  return {
    shape: `merge:${columnText(column)}:${removed.join('')};`,
    write: (out) => out.dialect.writeMerge(out, columnText(column), change),
    collect: (values, dialect) => dialect.collectMerge(values, change),
  };
}

/** Patterns of one shape differ in their keys, texts and numbers only. */
function shapeOf(pattern: JSONText): string {
  if (pattern === null) return 'n';
  if (pattern === true) return 't';
  if (pattern === false) return 'f';
  if (typeof pattern !== 'object') return typeof pattern === 'string' ? 's' : 'd';
  if (isArray(pattern)) return `[${pattern.map(shapeOf).join('')}]`;
  return `{${Object.values(pattern).map(shapeOf).join('')}}`;
}

export function isArray(value: JSONText): value is readonly JSONText[] {
  return Array.isArray(value);
}
