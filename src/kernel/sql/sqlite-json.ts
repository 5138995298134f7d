// JSON containment and merging with SQLite's JSON functions. Where Postgres has an operator, SQLite needs nested
// subqueries, one for each member and element of the pattern.
import { isArray, type JSONObject, type JSONText } from './matching.js';
import type { TextWriter, Value } from './sql.js';

/** The CASE keeps invalid JSON from failing the statement. */
export function writeContains(out: TextWriter, column: string, pattern: JSONObject): void {
  out.text(`CASE WHEN json_valid(${column}) THEN json_type(${column}) = 'object'`);
  writeMembers({ out, subqueries: 0 }, column, pattern);
  out.text(' ELSE FALSE END');
}

export function collectContains(values: Value[], pattern: JSONText): void {
  if (typeof pattern === 'string' || typeof pattern === 'number') values.push(pattern);
  if (typeof pattern !== 'object' || pattern === null) return;
  if (isArray(pattern)) pattern.forEach((element) => collectContains(values, element));
  else
    for (const [key, value] of Object.entries(pattern)) {
      values.push(key);
      collectContains(values, value);
    }
}

interface Writing {
  readonly out: TextWriter;
  /** Subqueries so far, to number their aliases. */
  subqueries: number;
}

function writeMembers(writing: Writing, json: string, pattern: JSONObject): void {
  for (const value of Object.values(pattern)) {
    const alias = openSubquery(writing, json);
    writing.out.text(`${alias}.key = `);
    writing.out.placeholder();
    writing.out.text(' AND ');
    writeMatch(writing, alias, value);
    writing.out.text(')');
  }
}

function writeElements(writing: Writing, json: string, pattern: readonly JSONText[]): void {
  for (const element of pattern) {
    const alias = openSubquery(writing, json);
    writeMatch(writing, alias, element);
    writing.out.text(')');
  }
}

function openSubquery(writing: Writing, json: string): string {
  writing.subqueries += 1;
  const alias = `j${writing.subqueries}`;
  writing.out.text(` AND EXISTS (SELECT 1 FROM json_each(${json}) AS ${alias} WHERE `);
  return alias;
}

/** True if the member or element `alias` contains the pattern. */
function writeMatch(writing: Writing, alias: string, pattern: JSONText): void {
  const { out } = writing;
  if (pattern === null || typeof pattern === 'boolean') {
    out.text(`${alias}.type = '${String(pattern)}'`);
  } else if (typeof pattern === 'object') {
    out.text(`${alias}.type = '${isArray(pattern) ? 'array' : 'object'}'`);
    if (isArray(pattern)) writeElements(writing, `${alias}.value`, pattern);
    else writeMembers(writing, `${alias}.value`, pattern);
  } else {
    const types = typeof pattern === 'string' ? `= 'text'` : `IN ('integer', 'real')`;
    out.text(`${alias}.type ${types} AND ${alias}.value = `);
    out.placeholder();
  }
}

export function writeMerge(out: TextWriter, column: string, change: JSONObject): void {
  const members = Object.values(change);
  for (const value of members.toReversed()) out.text(value === null ? 'json_remove(' : 'json_set(');
  out.text(`CASE WHEN json_valid(${column}) AND json_type(${column}) = 'object' THEN ${column} ELSE '{}' END`);
  for (const value of members) {
    out.text(', ');
    out.placeholder();
    if (value !== null) {
      out.text(', json(');
      out.placeholder();
      out.text(')');
    }
    out.text(')');
  }
}

export function collectMerge(values: Value[], change: JSONObject): void {
  for (const [key, value] of Object.entries(change)) {
    values.push(`$.${JSON.stringify(key)}`);
    if (value !== null) values.push(JSON.stringify(value));
  }
}
