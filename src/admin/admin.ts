// `createAdmin`: the interface, to be mounted into a server of your own.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DBOSInitializationError } from '../model/errors/errors.js';
import { Handler } from './handler.js';
import { serveNode } from './http/node.js';
import type { AdminSource } from './source.js';

export interface AdminOptions {
  /** `DBOS`, another instance, or a `DBOSClient`. */
  readonly source: AdminSource;
  /** What clients send as `Authorization: Bearer …`. */
  readonly token?: string;
  /** Serves without a token. Only for what is reached from this machine alone, or guarded by yourself. */
  readonly isOpen?: boolean;
  /** The names of hosts under which an open interface may be reached. Those of this machine unless given. */
  readonly allowedHosts?: readonly string[];
  /** The beginning of all paths, such as `/admin`, unless your framework takes it off. */
  readonly basePath?: string;
  /** Larger bodies are refused: 1 MiB unless given. */
  readonly bodyMaxBytes?: number;
}

export interface Admin {
  /** Answers a request of the Web standard. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Answers a request of Node's HTTP server, or of a framework on top of it. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Ends the streams of changes. Call it when your server is to end. */
  readonly close: () => void;
}

const BODY_MAX_BYTES = 1_048_576;

/** Makes the interface. It does nothing by itself until a request comes. */
export function createAdmin(options: AdminOptions): Admin {
  const { token, isOpen = false, bodyMaxBytes = BODY_MAX_BYTES, basePath = '', ...rest } = options;
  if (token === undefined && !isOpen) {
    throw new DBOSInitializationError('createAdmin needs a token, or isOpen if you guard the interface yourself.');
  }
  if (token !== undefined && isOpen) {
    throw new DBOSInitializationError('createAdmin takes a token or isOpen, not both.');
  }
  if (token?.trim() === '') throw new DBOSInitializationError('token must not be empty.');
  if (basePath !== '' && !/^(\/[^/?#]+)+$/.test(basePath)) {
    throw new DBOSInitializationError('basePath must begin with a slash and not end with one.');
  }
  const handler = new Handler({ ...rest, token, isOpen, bodyMaxBytes, basePath });
  const fetch = (request: Request): Promise<Response> => handler.fetch(request);
  return {
    fetch,
    handle: (request, response) => serveNode(fetch, request, response),
    close: () => handler.close(),
  };
}
