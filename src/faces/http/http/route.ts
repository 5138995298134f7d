// Routes of the JSON API: parameters, result and handler. One table drives routing, validation, the OpenAPI document and
// the test of the reference page.
import type { ChangeFeed } from '../changes/feed.js';
import { type Check, type Checked, type CheckedFields, type Fields, record } from '../../../kernel/check/validation.js';
import type { Readings } from '../dashboard/readings.js';
import type { Access, AccessControl } from './access.js';
import type { AdminSource, StoreOperator } from '../source.js';
import type { AdminOutbox } from '../../../plugins/outbox/outbox-view.http.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Shared by all handlers. */
export interface Environment {
  readonly source: AdminSource;
  readonly access: AccessControl;
  readonly feed: ChangeFeed;
  readonly readings: Readings;
  readonly outboxes: ReadonlyMap<string, AdminOutbox>;
}

export interface Call<Query = Readonly<Record<string, unknown>>, Body = unknown> {
  readonly operator: StoreOperator;
  readonly environment: Environment;
  readonly request: Request;
  /** Of the client or of a proxy before us; '' if it is unknown. */
  readonly address: string;
  /** Undefined only for public routes. */
  readonly access: Access | undefined;
  /** The path parameters. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: Body;
}

export interface Route {
  readonly method: Method;
  /** Relative to `/api/v1`, with parameters in braces. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  /** Whether it answers without a token. */
  readonly isPublic?: boolean;
  readonly isReading?: boolean;
  readonly query: Fields;
  readonly queryCheck: Check<Readonly<Record<string, unknown>>>;
  readonly body?: Check<unknown>;
  /** The media type of a body that the handler reads as a stream. */
  readonly bodyType?: string;
  readonly status: number;
  readonly result?: Check<unknown>;
  /** The media type of the response, if it is not JSON. */
  readonly mediaType?: string;
  /** Returns the response body, or a whole response. */
  handle(call: Call): Promise<unknown>;
}

interface Definition<Q extends Fields, B extends Check<unknown>> extends Omit<
  Route,
  'query' | 'queryCheck' | 'body' | 'status' | 'handle'
> {
  readonly query?: Q;
  readonly body?: B;
  /** Defaults to 200 with a result and 204 without one. */
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
    // Query and body have passed the checks of this definition.
    handle: (call) => definition.handle(call as Call<CheckedFields<Q>, Checked<B>>),
  };
}

/** What the router needs of a route. */
export interface Routed {
  readonly method: Method;
  readonly path: string;
  /** Whether it changes nothing. Defaults to whether its method is GET. */
  readonly isReading?: boolean;
}

export function isReading(route: Routed): boolean {
  return route.isReading ?? route.method === 'GET';
}

export interface Match<R extends Routed> {
  readonly route: R;
  readonly path: Readonly<Record<string, string>>;
}

/** Finds routes by path. Literal segments take precedence over parameters. */
export class Router<R extends Routed> {
  readonly #routes: readonly { readonly route: R; readonly parts: readonly string[] }[];

  constructor(routes: readonly R[]) {
    const key = ({ path }: R): string => path.replaceAll('{', '~');
    this.#routes = [...routes]
      .sort((a, b) => (key(a) < key(b) ? -1 : 1))
      .map((one) => ({ route: one, parts: partsOf(one.path) }));
  }

  /** The routes of a path by method; empty if none match. Undefined if the path cannot be decoded. */
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

/** Decodes each segment separately, because an ID may contain an encoded slash. */
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
