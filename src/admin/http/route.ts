// Routes of the JSON API: what each takes, gives and does. One table of them drives the routing, the validation, the
// OpenAPI document and the test of the reference.
import type { ChangeFeed } from '../changes/feed.js';
import {
  type Check,
  type Checked,
  type CheckedFields,
  type Fields,
  record,
} from '../../model/validation/validation.js';
import type { AdminSource, StoreOperator } from '../source.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What every handler may use. */
export interface Environment {
  readonly source: AdminSource;
  readonly feed: ChangeFeed;
}

export interface Call<Query = Readonly<Record<string, unknown>>, Body = unknown> {
  readonly operator: StoreOperator;
  readonly environment: Environment;
  readonly request: Request;
  /** The parts of the path that stand in braces. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
}

export interface Route {
  readonly method: Method;
  /** Below `/api/v1`; a part in braces stands for any one. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly query: Fields;
  readonly queryCheck: Check<Readonly<Record<string, unknown>>>;
  readonly body?: Check<unknown>;
  /** Of a body that the handler reads piece by piece. */
  readonly bodyType?: string;
  readonly status: number;
  readonly result?: Check<unknown>;
  /** Of the answer, where it is no JSON. */
  readonly mediaType?: string;
  /** Gives the body of the answer, or an answer of its own. */
  handle(call: Call): Promise<unknown>;
}

interface Definition<Q extends Fields, B extends Check<unknown>> extends Omit<
  Route,
  'query' | 'queryCheck' | 'body' | 'status' | 'handle'
> {
  readonly query?: Q;
  readonly body?: B;
  /** 200 with a result, 204 without one, unless given. */
  readonly status?: number;
  handle(call: Call<CheckedFields<Q>, Checked<B>>): Promise<unknown>;
}

// Without fields the query is an empty object.
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export function route<Q extends Fields = {}, B extends Check<unknown> = Check<undefined>>(
  definition: Definition<Q, B>,
): Route {
  const { query = {}, status, ...rest } = definition;
  const isEmpty = definition.result === undefined && definition.mediaType === undefined;
  return {
    ...rest,
    query,
    queryCheck: record(query),
    status: status ?? (isEmpty ? 204 : 200),
    // Query and body were read by the checks of this very definition.
    handle: (call) => definition.handle(call as Call<CheckedFields<Q>, Checked<B>>),
  };
}

/** What a router needs to know. */
export interface Routed {
  readonly method: Method;
  readonly path: string;
}

export interface Match<R extends Routed> {
  readonly route: R;
  readonly path: Readonly<Record<string, string>>;
}

/** Finds routes by path. Parts that are written out come before those in braces. */
export class Router<R extends Routed> {
  readonly #routes: readonly { readonly route: R; readonly parts: readonly string[] }[];

  constructor(routes: readonly R[]) {
    const key = ({ path }: R): string => path.replaceAll('{', '~');
    this.#routes = [...routes]
      .sort((a, b) => (key(a) < key(b) ? -1 : 1))
      .map((one) => ({ route: one, parts: partsOf(one.path) }));
  }

  /** The routes of a path by method; empty if there is no such path. Undefined if the path cannot be read. */
  find(path: string): Map<string, Match<R>> | undefined {
    const given = decodeParts(path);
    if (!given) return undefined;
    const found = new Map<string, Match<R>>();
    for (const { route: one, parts } of this.#routes) {
      const values = matchParts(parts, given);
      if (values && !found.has(one.method)) found.set(one.method, { route: one, path: values });
    }
    return found;
  }
}

function partsOf(path: string): string[] {
  return path.split('/').slice(1);
}

/** Decoded part by part: an ID may hold an encoded slash. */
function decodeParts(path: string): string[] | undefined {
  try {
    return partsOf(path).map(decodeURIComponent);
  } catch {
    // A lone percent sign.
    return undefined;
  }
}

function matchParts(parts: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  if (parts.length !== given.length) return undefined;
  const values: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const value = given[index] ?? '';
    if (part.startsWith('{')) values[part.slice(1, -1)] = value;
    else if (part !== value) return undefined;
  }
  return values;
}
