// A check says whether a value of unknown type can be used, and if not, what is wrong and where. Checks are made once,
// at module level, and cost no allocation for a value that is right: they are run in every call of the public API.
import { DBOSInvalidArgumentError } from '../errors/errors.js';
import { shown } from './shown.js';

export type JSONSchema = Readonly<Record<string, unknown>>;

/** What is wrong with a value. `messageOf` makes a sentence of it. */
export interface Problem {
  /** Where inside the value: empty for the value itself, else such as `.retry.max` or `[2]`. */
  readonly at: string;
  /** Follows the path: `must be a string`. */
  readonly says: string;
  /** The value that is wrong, where the message should show it. */
  readonly got?: { readonly value: unknown };
  /** A sentence on what to do. */
  readonly hint?: string;
  /** The value can be used: what is wrong is ignored, and warned of. */
  readonly isIgnored?: boolean;
}

/** How many warnings a check gives: names may be data. */
const WARNINGS_MAX = 20;

interface Definition {
  /** Completes "must be …". */
  readonly wants: string;
  readonly schema?: JSONSchema;
  readonly name?: string;
  readonly isOptional?: boolean;
  readonly parts?: readonly Check<unknown>[];
  readonly find: (value: unknown) => Problem | undefined;
}

export class Check<T> {
  readonly wants: string;
  /** The same as JSON Schema, for values that arrive as JSON. */
  readonly schema: JSONSchema;
  /** The name under which other schemas refer to this one. */
  readonly name: string | undefined;
  /** Whether a record may leave it out. */
  readonly isOptional: boolean;
  /** The checks that it is made of. */
  readonly parts: readonly Check<unknown>[];
  /** The first thing that is wrong with a value; undefined if nothing is. */
  readonly find: (value: unknown) => Problem | undefined;
  readonly #warnings = new Set<string>();

  constructor({ wants, schema = {}, name, isOptional = false, parts = [], find }: Definition) {
    this.wants = wants;
    this.schema = schema;
    this.name = name;
    this.isOptional = isOptional;
    this.parts = parts;
    this.find = find;
  }

  accepts(value: unknown): value is T {
    const problem = this.find(value);
    return problem === undefined || problem.isIgnored === true;
  }

  /** The first thing that keeps a value from being used. Warns, once, of what is ignored. */
  refusalOf(value: unknown, argument: string): Problem | undefined {
    const problem = this.find(value);
    if (!problem?.isIgnored) return problem;
    const message = messageOf(problem, argument);
    if (!this.#warnings.has(message) && this.#warnings.size < WARNINGS_MAX) {
      this.#warnings.add(message);
      // Functions are registered before there is a logger.
      process.emitWarning(message, 'EverstepWarning');
    }
    return undefined;
  }

  /** The value, if it can be used. Otherwise throws an error that calls it by its path, such as `options.limit`. */
  read(value: unknown, argument: string): T {
    const problem = this.refusalOf(value, argument);
    if (problem !== undefined) throw invalidArgument(problem, argument);
    // `find` has accepted it.
    return value as T;
  }

  /** The same check with a description for readers of its schema. */
  about(description: string): Check<T> {
    return new Check({ ...this, schema: { ...this.schema, description } });
  }

  /** The same check with a name for its schema. */
  named(name: string): Check<T> {
    return new Check({ ...this, name });
  }
}

/** What a check accepts. */
export type Checked<C> = C extends Check<infer T> ? T : never;

/** The schema of a check, or the reference to it if it has a name. */
export function schemaOf({ schema, name }: Check<unknown>): JSONSchema {
  return name === undefined ? schema : { $ref: `#/components/schemas/${name}` };
}

/** A check that a condition decides. */
export function checkThat<T>(wants: string, holds: (value: unknown) => boolean, schema?: JSONSchema): Check<T> {
  return new Check({
    wants,
    schema,
    find: (value) => (holds(value) ? undefined : wrong(wants, value)),
  });
}

export function wrong(wants: string, value: unknown): Problem {
  return { at: '', says: `must be ${wants}`, got: { value } };
}

/** The problem of a part, as one of the whole. `key` is the part's place, such as `.limit` or `[2]`. */
export function inside(key: string, problem: Problem): Problem {
  return { ...problem, at: `${key}${problem.at}` };
}

/** `limit must be an integer from 1 to 10, but is 11.` */
export function messageOf(
  problem: Problem,
  argument: string,
  show: (value: unknown) => string | undefined = shown,
): string {
  const { says, got, hint } = problem;
  const value = got && show(got.value);
  const shownValue = value === undefined ? '' : `, but is ${value}`;
  return `${pathOf(problem, argument)} ${says}${shownValue}.${hint === undefined ? '' : ` ${hint}`}`;
}

function pathOf({ at }: Problem, argument: string): string {
  return argument === '' && at.startsWith('.') ? at.slice(1) : `${argument}${at}`;
}

export function invalidArgument(problem: Problem, argument: string): DBOSInvalidArgumentError {
  return new DBOSInvalidArgumentError(messageOf(problem, argument), pathOf(problem, argument));
}
