// Tokens that match prefixes and JSON, which differ between the dialects.
import { quoteIdentifier, type Token } from './sql.js';

/** A JSON value. */
export type JSONText = null | boolean | number | string | readonly JSONText[] | JSONObject;
export interface JSONObject {
  readonly [key: string]: JSONText;
}

export interface ColumnName {
  readonly alias?: string;
  readonly name: string;
  /** Keeps the planner from using an index on the column. */
  readonly isHidden?: boolean;
}

function columnText({ alias, name, isHidden = false }: ColumnName): string {
  const text = alias === undefined ? quoteIdentifier(name) : `${quoteIdentifier(alias)}.${quoteIdentifier(name)}`;
  return isHidden ? `(${text} || '')` : text;
}

/** True if the column starts with the prefix, taken literally. Can use an index. */
export function startsWith(column: ColumnName, prefix: string): Token {
  return {
    shape: `starts:${columnText(column)};`,
    write: (out) => out.dialect.writeStartsWith(out, columnText(column)),
    collect: (values, dialect) => dialect.collectStartsWith(values, prefix),
  };
}

/**
 * True if the column's JSON contains the pattern, as Postgres' `@>` defines it: objects contain those with a subset of
 * their members, arrays those with a subset of their elements in any order, recursively.
 */
export function containsJSON(column: ColumnName, pattern: JSONObject): Token {
  return {
    shape: `contains:${columnText(column)}:${shapeOf(pattern)};`,
    write: (out) => out.dialect.writeContains(out, columnText(column), pattern),
    collect: (values, dialect) => dialect.collectContains(values, pattern),
  };
}

/** The column's JSON object merged with the change; null removes a member. */
export function mergeJSON(column: ColumnName, change: JSONObject): Token {
  const removed = Object.values(change).map((value) => (value === null ? '-' : '+'));
  return {
    shape: `merge:${columnText(column)}:${removed.join('')};`,
    write: (out) => out.dialect.writeMerge(out, columnText(column), change),
    collect: (values, dialect) => dialect.collectMerge(values, change),
  };
}

/** Patterns of one shape differ only in keys, strings and numbers. */
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

/** The smallest string greater than all that start with the prefix; undefined if there is none. */
export function endOfPrefix(prefix: string): string | undefined {
  const points = [...prefix];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    if (next > 0x10ffff) continue;
    // Skip the surrogates, which are no characters.
    return points.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next);
  }
  return undefined;
}
