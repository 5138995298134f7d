// `createAdmin`: the HTTP interface, for mounting into your own server.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DBOSInitializationError } from '../model/errors/errors.js';
import { Handler } from './handler.js';
import { serveNode } from './http/node.js';
import type { AdminSource } from './source.js';

export interface AdminOptions {
  /** `DBOS`, another instance, or a `DBOSClient`. */
  readonly source: AdminSource;
  /** Clients send it as `Authorization: Bearer …`. */
  readonly token?: string;
  /** Serves without a token. Only for an interface reachable from this machine alone, or one you guard yourself. */
  readonly isOpen?: boolean;
  /** Host names an open interface accepts. Defaults to the loopback names. */
  readonly allowedHosts?: readonly string[];
  /** Path prefix, such as `/admin`, unless your framework strips it. */
  readonly basePath?: string;
  /** Larger bodies are refused. Defaults to 1 MiB. */
  readonly bodyMaxBytes?: number;
}

export interface Admin {
  /** Handles a Fetch API request. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Handles a request of Node's HTTP server, or of a framework on top of it. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** Ends the event streams. Call it when you stop your server. */
  readonly close: () => void;
}

const BODY_MAX_BYTES = 1_048_576;

/** Creates the interface. It does nothing until a request arrives. */
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
