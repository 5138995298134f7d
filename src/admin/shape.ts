// The shapes of what clients send and get. A shape reads a value, refusing it with the name of the field that is wrong,
// and describes itself as JSON Schema, so that validation and the OpenAPI document cannot differ.
import { invalid } from './http/refusal.js';

export type JSONSchema = Readonly<Record<string, unknown>>;

export interface Shape<T> {
  readonly schema: JSONSchema;
  /** The name under which the OpenAPI document keeps the schema. */
  readonly name?: string;
  readonly isOptional?: boolean;
  /** The shapes that it is made of. */
  readonly parts?: readonly Shape<unknown>[];
  read(value: unknown, field: string): T;
}

/** What a shape reads. */
export type Read<S> = S extends Shape<infer T> ? T : never;

export type Fields = Readonly<Record<string, Shape<unknown>>>;

/** Fields that are optional may be absent. */
export type ReadFields<F extends Fields> = {
  readonly [K in keyof F as undefined extends Read<F[K]> ? never : K]: Read<F[K]>;
} & { readonly [K in keyof F as undefined extends Read<F[K]> ? K : never]?: Read<F[K]> };

const TEXT_MAX = 10_000;
export const LIST_MAX = 10_000;
export const INT_MAX = 2_147_483_647;

export interface TextOptions {
  readonly about?: string;
  readonly min?: number;
  readonly max?: number;
}

/** A text. Neither database can store the character NUL. */
export function text({ about, min = 0, max = TEXT_MAX }: TextOptions = {}): Shape<string> {
  return {
    schema: described({ type: 'string', ...(min > 0 && { minLength: min }), maxLength: max }, about),
    read(value, field) {
      if (typeof value !== 'string') throw wrong(field, 'a text', value);
      if (value.length < min) throw invalid(`${field} must not be empty.`);
      if (value.length > max) throw invalid(`${field} must have at most ${max} characters, but has ${value.length}.`);
      if (value.includes('\0')) throw invalid(`${field} must not hold the character NUL.`);
      return value;
    },
  };
}

/** A text that names something. */
export function nonEmpty(about?: string): Shape<string> {
  return text({ about, min: 1 });
}

export interface NumberOptions {
  readonly about?: string;
  readonly min?: number;
  readonly max?: number;
}

export function integer({ about, min = 0, max = Number.MAX_SAFE_INTEGER }: NumberOptions = {}): Shape<number> {
  return {
    schema: described({ type: 'integer', minimum: min, maximum: max }, about),
    read(value, field) {
      if (!Number.isInteger(value)) throw wrong(field, 'a whole number', value);
      return inRange(value as number, field, { min, max });
    },
  };
}

export function number({ about, min = 0, max = Number.MAX_SAFE_INTEGER }: NumberOptions = {}): Shape<number> {
  return {
    schema: described({ type: 'number', minimum: min, maximum: max }, about),
    read(value, field) {
      if (typeof value !== 'number' || !Number.isFinite(value)) throw wrong(field, 'a number', value);
      return inRange(value, field, { min, max });
    },
  };
}

function inRange(value: number, field: string, { min, max }: { min: number; max: number }): number {
  if (value < min || value > max) throw invalid(`${field} must be from ${min} to ${max}, but is ${value}.`);
  return value;
}

export function flag(about?: string): Shape<boolean> {
  return {
    schema: described({ type: 'boolean' }, about),
    read(value, field) {
      if (typeof value !== 'boolean') throw wrong(field, 'true or false', value);
      return value;
    },
  };
}

export function oneOfTexts<const T extends string>(values: readonly T[], about?: string): Shape<T> {
  return {
    schema: described({ type: 'string', enum: values }, about),
    read(value, field) {
      if (!values.includes(value as T)) throw wrong(field, `one of ${values.join(', ')}`, value);
      return value as T;
    },
  };
}

/** A moment, as ISO 8601 with a time zone, or a date alone. */
export function moment(about?: string): Shape<string> {
  return {
    schema: described({ type: 'string', format: 'date-time' }, about),
    read(value, field) {
      const isMoment = typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value) && !Number.isNaN(Date.parse(value));
      if (!isMoment) throw wrong(field, 'a time such as 2030-01-31T12:00:00Z', value);
      return value;
    },
  };
}

export function listOf<T>(item: Shape<T>, { about, min = 0, max = LIST_MAX }: NumberOptions = {}): Shape<T[]> {
  return {
    schema: described(
      { type: 'array', items: schemaOf(item), ...(min > 0 && { minItems: min }), maxItems: max },
      about,
    ),
    parts: [item],
    read(value, field) {
      if (!Array.isArray(value)) throw wrong(field, 'a list', value);
      if (value.length < min || value.length > max) {
        throw invalid(`${field} must have from ${min} to ${max} elements, but has ${value.length}.`);
      }
      return value.map((element, index) => item.read(element, `${field}[${index}]`));
    },
  };
}

/** An object with these fields and no others. */
export function object<F extends Fields>(fields: F, about?: string): Shape<ReadFields<F>> {
  const required = Object.keys(fields).filter((key) => !fields[key]?.isOptional);
  const properties = Object.fromEntries(Object.entries(fields).map(([key, shape]) => [key, schemaOf(shape)]));
  return {
    schema: described(
      { type: 'object', properties, ...(required.length > 0 && { required }), additionalProperties: false },
      about,
    ),
    parts: Object.values(fields),
    read(value, field) {
      const record = asRecord(value, field);
      const unknown = Object.keys(record).find((key) => !Object.hasOwn(fields, key));
      if (unknown !== undefined) throw invalid(`${join(field, unknown)} is not known here.`);
      return readFields(fields, record, field);
    },
  };
}

export function readFields<F extends Fields>(
  fields: F,
  record: Readonly<Record<string, unknown>>,
  field: string,
): ReadFields<F> {
  const read: Record<string, unknown> = {};
  for (const [key, shape] of Object.entries(fields)) {
    const value = Object.hasOwn(record, key) ? record[key] : undefined;
    if (value !== undefined) read[key] = shape.read(value, join(field, key));
    else if (!shape.isOptional) throw invalid(`${join(field, key)} is missing.`);
  }
  // Each field has been read by its own shape.
  return read as ReadFields<F>;
}

/** An object whose keys are names and whose values have one shape. */
export function mapOf<T>(item: Shape<T>, about?: string): Shape<Record<string, T>> {
  return {
    schema: described({ type: 'object', additionalProperties: schemaOf(item) }, about),
    parts: [item],
    read(value, field) {
      const entries = Object.entries(asRecord(value, field));
      return Object.fromEntries(entries.map(([key, element]) => [key, item.read(element, join(field, key))]));
    },
  };
}

/** Any JSON value. */
export function anything(about?: string): Shape<unknown> {
  return { schema: described({}, about), read: (value) => value };
}

/** A JSON object of any content. */
export function anyObject(about?: string): Shape<Record<string, unknown>> {
  return {
    schema: described({ type: 'object' }, about),
    read(value, field) {
      const record = asRecord(value, field);
      if (JSON.stringify(record).includes('\\u0000')) throw invalid(`${field} must not hold the character NUL.`);
      return record;
    },
  };
}

export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return { ...shape, isOptional: true };
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return {
    schema: { anyOf: [schemaOf(shape), { type: 'null' }] },
    parts: [shape],
    read: (value, field) => (value === null ? null : shape.read(value, field)),
  };
}

/** Gives the schema a name, under which the OpenAPI document refers to it. */
export function named<T>(name: string, shape: Shape<T>): Shape<T> {
  return { ...shape, name };
}

/** The schema, or the reference to it if it has a name. */
export function schemaOf({ schema, name }: Shape<unknown>): JSONSchema {
  return name === undefined ? schema : { $ref: `#/components/schemas/${name}` };
}

function described(schema: JSONSchema, about: string | undefined): JSONSchema {
  return about === undefined ? schema : { ...schema, description: about };
}

function asRecord(value: unknown, field: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw wrong(field, 'an object', value);
}

function join(field: string, key: string): string {
  return field === '' ? key : `${field}.${key}`;
}

/** Says what was wanted. Of what came only the kind is told: it may be long, or secret. */
function wrong(field: string, wanted: string, value: unknown): Error {
  const kind = value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`;
  const shown = typeof value === 'string' && value.length <= 100 ? JSON.stringify(value) : kind;
  return invalid(`${field || 'The body'} must be ${wanted}, but is ${typeof value === 'string' ? shown : kind}.`);
}
