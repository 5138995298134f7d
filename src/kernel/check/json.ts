// Checks of JSON: objects of any content that both databases can store.
import { DBOSInvalidArgumentError, type JSONValue } from '../errors/errors.js';
import { Check, inside, invalidArgument, type Problem, wrong } from './check.js';
import { isRecord } from './containers.js';
import { shownKey } from './shown.js';
import { storageProblem } from './values.js';

/** Deeper values overflow the stack of those who write or read them. */
const DEPTH_MAX = 500;
/** Far beyond what anyone means by a pattern; it bounds the statement that looks for it. */
const PATTERN_NODES_MAX = 200;
const PATTERN_DEPTH_MAX = 20;

export interface JSONObject {
  [key: string]: JSONValue;
}

/** An object that came as JSON. */
export const jsonObject: Check<Record<string, unknown>> = new Check({
  wants: 'an object',
  schema: { type: 'object' },
  find: (value) => (isRecord(value) ? problemIn(value, 0) : wrong('an object', value)),
});

function problemIn(value: unknown, depth: number): Problem | undefined {
  if (typeof value === 'string') return storageProblem(value);
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > DEPTH_MAX) return { at: '', says: `must not be nested more than ${DEPTH_MAX} levels deep` };
  for (const [key, part] of Object.entries(value)) {
    const problem = storageProblem(key) ?? problemIn(part, depth + 1);
    // A path of hundreds of keys is not readable.
    if (problem !== undefined) return depth > 5 ? problem : inside(shownKey(key), problem);
  }
  return undefined;
}

/** A copy of an object as JSON has it: dates are strings. */
export function readJSONObject(value: unknown, argument: string): JSONObject {
  if (!isRecord(value)) throw invalidArgument(wrong('an object', value), argument);
  refuseLoss(value, argument);
  const copy = jsonObject.read(copyAsJSON(value, argument), argument);
  // It was parsed from JSON.
  return copy as JSONObject;
}

/** Refuses what JSON would leave out or write as `{}`. */
export function refuseLoss(value: object, argument: string): void {
  const lost = lossIn(value, 0);
  if (lost) throw invalidArgument(lost, argument);
}

/** A field that JSON leaves out, such as a function, or an object without fields, such as a Map. */
function lossIn(value: unknown, depth: number): Problem | undefined {
  if (typeof value === 'function' || typeof value === 'symbol') return wrong('a JSON value', value);
  // A cycle ends at this depth, too. JSON refuses it.
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return undefined;
  if (typeof (value as { readonly toJSON?: unknown }).toJSON === 'function') return undefined;
  const fields = Object.entries(value);
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = Array.isArray(value) || prototype === Object.prototype || prototype === null;
  if (fields.length === 0 && !isPlain) {
    const [, kind = ''] = /^\[object (.*)\]$/.exec(Object.prototype.toString.call(value)) ?? [];
    return { at: '', says: `must be a JSON value, but is of the type ${kind}` };
  }
  for (const [key, part] of fields) {
    const problem = lossIn(part, depth + 1);
    if (problem !== undefined) return depth > 5 ? problem : inside(shownKey(key), problem);
  }
  return undefined;
}

function copyAsJSON(value: unknown, argument: string): unknown {
  try {
    return JSON.parse(JSON.stringify(value)) as unknown;
  } catch (cause) {
    throw new DBOSInvalidArgumentError(`${argument} cannot be written as JSON.`, argument, { cause });
  }
}

/** The same for a pattern to search for, which must not be too large. */
export function readJSONPattern(value: unknown, argument: string): JSONObject {
  const pattern = readJSONObject(value, argument);
  let nodes = 0;
  const visit = (part: JSONValue, depth: number): void => {
    nodes += 1;
    if (nodes > PATTERN_NODES_MAX || depth > PATTERN_DEPTH_MAX) {
      throw new DBOSInvalidArgumentError(
        `${argument} must have at most ${PATTERN_NODES_MAX} values in ${PATTERN_DEPTH_MAX} levels. Search for less.`,
        argument,
      );
    }
    if (typeof part === 'object' && part !== null) for (const one of Object.values(part)) visit(one, depth + 1);
  };
  visit(pattern, 0);
  return pattern;
}
