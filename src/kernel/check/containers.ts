// Checks that are made of other checks.
import { Check, type Checked, inside, type Problem, schemaOf, wrong } from './check.js';
import { nearest } from './nearest.js';
import { shown, shownKey } from './shown.js';

/** The value may be left out. */
export function optional<T>(check: Check<T>): Check<T | undefined> {
  return new Check({
    ...check,
    isOptional: true,
    find: (value) => (value === undefined ? undefined : check.find(value)),
  });
}

/** The value may be left out or null, which is how JSON leaves a value out. */
export function nullish<T>(check: Check<T>): Check<T | null | undefined> {
  return new Check({
    ...check,
    isOptional: true,
    find: (value) => (value === undefined || value === null ? undefined : check.find(value)),
  });
}

export function nullable<T>(check: Check<T>): Check<T | null> {
  return new Check({
    wants: `${check.wants}, or null`,
    schema: { anyOf: [schemaOf(check), { type: 'null' }] },
    parts: [check],
    find: (value) => (value === null ? undefined : check.find(value)),
  });
}

export interface ArrayOptions {
  readonly min?: number;
  readonly max?: number;
}

export function array<T>(item: Check<T>, { min = 0, max = Infinity }: ArrayOptions = {}): Check<T[]> {
  return new Check({
    wants: 'an array',
    schema: {
      type: 'array',
      items: schemaOf(item),
      ...(min > 0 && { minItems: min }),
      ...(max < Infinity && { maxItems: max }),
    },
    parts: [item],
    find(value) {
      if (!Array.isArray(value)) return wrong('an array', value);
      if (value.length === 0 && min === 1) return { at: '', says: 'must not be empty' };
      if (value.length < min || value.length > max) {
        const range = max < Infinity ? `from ${min} to ${max}` : `at least ${min}`;
        return { at: '', says: `must have ${range} elements, but has ${value.length}` };
      }
      return findInArray(item, value);
    },
  });
}

function findInArray(item: Check<unknown>, values: readonly unknown[]): Problem | undefined {
  let ignored: Problem | undefined;
  for (let index = 0; index < values.length; index += 1) {
    const problem = item.find(values[index]);
    if (problem === undefined) continue;
    if (!problem.isIgnored) return inside(`[${index}]`, problem);
    ignored ??= inside(`[${index}]`, problem);
  }
  return ignored;
}

/** A value, or an array of them. `asArray` makes an array of what was accepted. */
export function oneOrMany<T>(item: Check<T>): Check<T | readonly T[]> {
  return new Check({
    wants: `${item.wants}, or an array of them`,
    schema: { anyOf: [schemaOf(item), { type: 'array', items: schemaOf(item) }] },
    parts: [item],
    find: (value) => (Array.isArray(value) ? findInArray(item, value) : item.find(value)),
  });
}

export function asArray<T>(given: T | readonly T[] | null | undefined): readonly T[] | undefined {
  if (given === undefined || given === null) return undefined;
  return Array.isArray(given) ? (given as readonly T[]) : [given as T];
}

export type Fields = Readonly<Record<string, Check<unknown>>>;

/** What a record with these fields holds. Optional fields may be absent. */
export type CheckedFields<F extends Fields> = {
  readonly [K in keyof F as undefined extends Checked<F[K]> ? never : K]: Checked<F[K]>;
} & { readonly [K in keyof F as undefined extends Checked<F[K]> ? K : never]?: Checked<F[K]> };

export interface RecordOptions {
  /** What to do with other keys. A misspelt option that is ignored does something else than its caller thinks. */
  readonly unknown?: 'refuse' | 'warn' | 'ignore';
}

/** An object with these fields: options, settings, the body of a request. */
export function record<F extends Fields>(
  fields: F,
  { unknown = 'refuse' }: RecordOptions = {},
): Check<CheckedFields<F>> {
  const keys = Object.keys(fields);
  const checks = Object.values(fields);
  const known = new Set(keys);
  const required = keys.filter((key) => !fields[key]?.isOptional);
  const properties = Object.fromEntries(keys.map((key, index) => [key, schemaOf(checks[index] as Check<unknown>)]));
  return new Check({
    wants: 'an object',
    schema: {
      type: 'object',
      properties,
      ...(required.length > 0 && { required }),
      ...(unknown === 'refuse' && { additionalProperties: false }),
    },
    parts: checks,
    find(value) {
      if (!isRecord(value)) return wrong('an object', value);
      if (unknown === 'refuse') {
        for (const key in value) if (!known.has(key)) return unknownKey(key, keys);
      }
      let ignored: Problem | undefined;
      for (let index = 0; index < keys.length; index += 1) {
        const key = keys[index] as string;
        const check = checks[index] as Check<unknown>;
        const field = value[key];
        if (field === undefined && check.isOptional) continue;
        if (field === undefined) return { at: `.${key}`, says: `is missing; it must be ${check.wants}` };
        const problem = check.find(field);
        if (problem === undefined) continue;
        if (!problem.isIgnored) return inside(`.${key}`, problem);
        ignored ??= inside(`.${key}`, problem);
      }
      return unknown === 'warn' ? (ignoredKeys(value, keys) ?? ignored) : ignored;
    },
  });
}

/**
 * The options of a call that DBOS has too. It ignores other fields, and code that passes them works there, so they are only
 * warned of.
 */
export function lenientRecord<F extends Fields>(fields: F): Check<CheckedFields<F>> {
  return record(fields, { unknown: 'warn' });
}

const OPTIONAL_VALUE = new Check<unknown>({ wants: 'any value', isOptional: true, find: () => undefined });

/** Warns of fields without a check, and leaves the values to the caller. */
export function fieldNames(checks: Fields): Check<object> {
  return lenientRecord(Object.fromEntries(Object.keys(checks).map((key) => [key, OPTIONAL_VALUE])));
}

/** How many names a message lists. */
const LISTED_MAX = 40;

export function unknownKey(key: string, keys: readonly string[]): Problem {
  const near = nearest(key, keys);
  const listed = keys.length > LISTED_MAX ? `${keys.slice(0, LISTED_MAX).join(', ')}, …` : keys.join(', ');
  return {
    at: '',
    says: `has an unknown field ${shown(key)}`,
    hint: near === undefined ? `Known fields: ${listed}.` : `Did you mean "${near}"?`,
  };
}

/** Names all of them: a check reports one problem of a value. */
function ignoredKeys(value: Readonly<Record<string, unknown>>, known: readonly string[]): Problem | undefined {
  const keys = Object.keys(value).filter((key) => value[key] !== undefined && !known.includes(key));
  const [first] = keys;
  if (first === undefined) return undefined;
  const { says, hint } = unknownKey(keys.find((key) => nearest(key, known) !== undefined) ?? first, known);
  const others = keys.length > 1 ? ` (of ${keys.slice(0, LISTED_MAX).map(shown).join(', ')})` : '';
  return { at: '', says: `${says}${others}, which is ignored`, hint, isIgnored: true };
}

/** An object whose keys are names and whose values pass one check. */
export function mapOf<T>(item: Check<T>, name?: Check<string>): Check<Record<string, T>> {
  return new Check({
    wants: 'an object',
    schema: { type: 'object', additionalProperties: schemaOf(item) },
    parts: [item],
    find(value) {
      if (!isRecord(value)) return wrong('an object', value);
      for (const key of Object.keys(value)) {
        const problem = name?.find(key) ?? item.find(value[key]);
        if (problem !== undefined) return inside(shownKey(key), problem);
      }
      return undefined;
    },
  });
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}
