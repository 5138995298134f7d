// Formats of stored values: their names in the `serialization` columns, and the interfaces for a custom serializer and for
// a recipe that adds one type.
import type { JSONValue } from '../errors/errors.js';

/** The default format; what 'native' means if no serializer is configured. */
export const SUPERJSON_FORMAT = 'js_superjson';
/** The format that every language reads. */
export const PORTABLE_FORMAT = 'portable_json';
/** The format of releases before superjson. Read only. */
export const LEGACY_FORMAT = 'js_legacy';

/** The choice a user has: the configured serializer (default), or portable JSON. */
export type WorkflowSerializationFormat = undefined | 'native' | 'portable';

/** The arguments of a workflow. Only the portable format has named ones. */
export interface Inputs {
  readonly args: unknown[];
  readonly namedArgs?: Record<string, unknown>;
}

/** Replaces the default format. `name` is stored with each value; both directions may be asynchronous. */
export interface DBOSSerializer {
  name: () => string;
  stringify(value: unknown): string | Promise<string>;
  /** Gets null or undefined if no text is stored. */
  parse(text: string | null | undefined): unknown;
}

/** Adds a type to the default format. */
export interface SerializationRecipe<T, S extends JSONValue> {
  readonly name: string;
  /** Called for every value in a stored tree, so it must accept any. */
  isApplicable(value: unknown): value is T;
  serialize(value: T): S;
  deserialize(stored: S): T;
}

/** A recipe with its types erased. */
export type AnyRecipe = SerializationRecipe<unknown, JSONValue>;
