// Calls the HTTP interface, with types from its OpenAPI document. Everything the server refuses becomes an `APIError`
// with the message of the server; what never reached it is an `APIError` without a status.
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];
export type Workflow = Schemas['Workflow'];
export type WorkflowState = Workflow['status'];
export type Value = Schemas['Value'];

/** The path under which the pages are served. The server sets it with `<base>`. */
export const pagesPath = new URL(document.baseURI).pathname.replace(/\/$/, '');
/** The interface stands beside the pages, wherever both are mounted. */
export const apiURL = new URL('../api/v1', document.baseURI).href;

/** The value that the server wants to see in a change, so that no other site can make one. */
let csrf: string | undefined;

export function setCSRF(token: string | undefined): void {
  csrf = token;
}

export class APIError extends Error {
  constructor(
    message: string,
    readonly status?: number,
    readonly code?: string,
  ) {
    super(message);
  }
}

export const api = createClient<paths>({ baseUrl: apiURL, credentials: 'same-origin' });

api.use({
  onRequest({ request }) {
    if (csrf !== undefined && request.method !== 'GET') request.headers.set('x-everstep-csrf', csrf);
  },
  onError() {
    return new APIError('The server cannot be reached.');
  },
});

interface Answer<T> {
  readonly data?: T;
  readonly error?: unknown;
  readonly response: Response;
}

/** The data of an answer; throws an `APIError` if the server refused. */
export async function unwrap<T>(answer: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  // A change without a result has no body.
  if (response.ok) return data as T;
  const { code, message } = (error as { error?: { code?: string; message?: string } } | undefined)?.error ?? {};
  throw new APIError(message ?? `The server answered ${response.status}.`, response.status, code);
}

export function isRefused(error: unknown, ...statuses: readonly number[]): error is APIError {
  return error instanceof APIError && error.status !== undefined && statuses.includes(error.status);
}
