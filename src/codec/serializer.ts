// What a format of stored values is: the names that stand in the `serialization` columns, and the two interfaces
// through which an application brings its own, a whole serializer or a recipe for one type.
import type { JSONValue } from '../model/errors/errors.js';

/** The default format and what 'native' means unless a serializer is configured. */
export const SUPERJSON_FORMAT = 'js_superjson';
/** The format that every language reads. */
export const PORTABLE_FORMAT = 'portable_json';
/** What releases before superjson wrote. Read only. */
export const LEGACY_FORMAT = 'js_legacy';

/** The choice a user has: the configured serializer (default), or portable JSON. */
export type WorkflowSerializationFormat = undefined | 'native' | 'portable';

/** The arguments of a workflow. Only the portable form can carry named ones. */
export interface Inputs {
  readonly args: unknown[];
  readonly namedArgs?: Record<string, unknown>;
}

/** Replaces the default format. Its `name` is stored beside each value; both directions may be asynchronous. */
export interface DBOSSerializer {
  name: () => string;
  stringify(value: unknown): string | Promise<string>;
  /** Gets null or undefined where no text is stored. */
  parse(text: string | null | undefined): unknown;
}

/** Teaches the default format one more type. */
export interface SerializationRecipe<T, S extends JSONValue> {
  readonly name: string;
  /** Asked for every value in a stored tree, so it must accept any. */
  isApplicable(value: unknown): value is T;
  serialize(value: T): S;
  deserialize(stored: S): T;
}

/** A recipe whose types are no longer known. */
export type AnyRecipe = SerializationRecipe<unknown, JSONValue>;
