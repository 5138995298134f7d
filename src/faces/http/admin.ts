// `createAdmin`: the HTTP interface, for mounting into your own server.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { internals } from '../../kernel/base/internals.js';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';
import {
  array,
  boolean,
  Check,
  checkThat,
  filledString,
  func,
  mapOf,
  optional,
  positiveInteger,
  record,
} from '../../kernel/check/validation.js';
import { Handler, type HandlerOptions } from './handler.js';
import { serveNode } from './http/node.js';
import type { AdminSource } from './source.js';
import type { AdminOutbox } from '../../plugins/outbox/outbox-view.http.js';

export interface AdminOptions {
  /** `DBOS`, another instance, or a `DBOSClient`. */
  readonly source: AdminSource;
  /** Clients send it as `Authorization: Bearer …`. */
  readonly token?: string;
  /** A second token, for people and programs that may look but not change anything. */
  readonly readOnlyToken?: string;
  /** Refuses all changes. */
  readonly isReadOnly?: boolean;
  /** Serves without a token. Only for an interface reachable from this machine alone, or one you guard yourself. */
  readonly isOpen?: boolean;
  /** Host names an open interface accepts. Defaults to the loopback names. */
  readonly allowedHosts?: readonly string[];
  /** Path prefix, such as `/admin`, unless your framework strips it. */
  readonly basePath?: string;
  /** Larger bodies are refused. Defaults to 1 MiB. */
  readonly bodyMaxBytes?: number;
  /** Outboxes by name, to be managed under `/api/v1/outboxes`. */
  readonly outboxes?: Readonly<Record<string, AdminOutbox>>;
  /** A check of your own: `/readyz` answers 503 while it returns false, throws or takes longer than a second. */
  readonly isReady?: () => boolean | Promise<boolean>;
  /** The built dashboard. Only for applications bundled together with this package, which then has no files of its own. */
  readonly dashboardFolder?: string;
}

export interface Admin {
  /** Handles a Fetch API request. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Handles a request of Node's HTTP server, or of a framework on top of it. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Ends the event streams. Call it when you stop your server. */
  readonly close: () => void;
}

/** The message does not show a token. */
const token: Check<string> = new Check({
  wants: 'a non-empty string',
  find(value) {
    if (typeof value !== 'string') return { at: '', says: 'must be a string' };
    return value.trim() === '' ? { at: '', says: 'must not be empty' } : undefined;
  },
});

const adminSource: Check<AdminSource> = checkThat(
  'DBOS, another instance of it, or a DBOSClient',
  (value) => (typeof value === 'object' || typeof value === 'function') && value !== null && internals in value,
);

const basePathCheck: Check<string> = checkThat(
  'a path that begins with a slash and does not end with one',
  (value) => typeof value === 'string' && (value === '' || /^(\/[^/?#]+)+$/.test(value)),
);

const outboxCheck: Check<AdminOutbox> = checkThat(
  'an OutboxBroker',
  (value) => typeof value === 'object' && value !== null && 'checkSchema' in value && 'statistics' in value,
);

const OPTIONS = record({
  source: adminSource,
  token: optional(token),
  readOnlyToken: optional(token),
  isReadOnly: optional(boolean),
  isOpen: optional(boolean),
  allowedHosts: optional(array(filledString)),
  basePath: optional(basePathCheck),
  bodyMaxBytes: optional(positiveInteger),
  outboxes: optional(mapOf(outboxCheck)),
  isReady: optional(func),
  dashboardFolder: optional(filledString),
});

/** Creates the interface. It does nothing until a request arrives. */
export function createAdmin(options: AdminOptions): Admin {
  const given = OPTIONS.read(options, 'options');
  const { source, isOpen = false, isReadOnly = false, bodyMaxBytes, basePath = '' } = given;
  if (given.token === undefined && !isOpen) {
    throw new DBOSInitializationError('createAdmin needs a token, or isOpen if you guard the interface yourself.');
  }
  if (given.token !== undefined && isOpen) {
    throw new DBOSInitializationError('createAdmin takes a token or isOpen, not both.');
  }
  if (given.readOnlyToken !== undefined && (isOpen || given.readOnlyToken === given.token)) {
    throw new DBOSInitializationError('readOnlyToken needs a token beside it and must differ from it.');
  }
  const allowedHosts = given.allowedHosts?.map((host) => host.toLowerCase());
  const outboxes = new Map(Object.entries(given.outboxes ?? {}));
  const { isReady, dashboardFolder } = options;
  return adminOf({
    source,
    token: given.token,
    readOnlyToken: given.readOnlyToken,
    isOpen,
    isReadOnly,
    allowedHosts,
    bodyMaxBytes,
    basePath,
    outboxes,
    ...(isReady && { isReady }),
    ...(dashboardFolder !== undefined && { dashboardFolder }),
  });
}

/** The interface of checked options. */
export function adminOf(options: HandlerOptions): Admin {
  const handler = new Handler(options);
  return {
    fetch: (request) => handler.fetch(request),
    handle: (request, response) => serveNode((one, connection) => handler.fetch(one, connection), request, response),
    close: () => handler.close(),
  };
}
