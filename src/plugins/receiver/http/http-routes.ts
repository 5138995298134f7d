// Routes that start workflows, wait for them and report on them, for any web framework. A route maps a plain request to
// a plain answer; `http-frameworks.ts` converts to and from those of the frameworks. Answers reveal nothing internal:
// errors are logged.
import { type DurationText, inMs } from '../../../kernel/base/duration.js';
import { recognizeCopies } from '../../../kernel/base/copies.js';
import { isAmbiguousPath } from '../../../kernel/base/url.js';
import {
  DBOSExecutorNotInitializedError,
  DBOSNotAuthorizedError,
  SerializationError,
  WebhookVerificationError,
} from '../../../kernel/errors/errors.js';
import {
  hasArguments,
  type HttpInstance,
  nowOf,
  receivingHost,
  type StartedWorkflow,
  valueWithin,
  workflowNameOf,
} from '../../../run/plugin.js';
import { filledName } from '../../../kernel/check/validation.js';
import { checkedScope, workflowIDFor } from './http-keys.js';
import { runOptions, startOptions, webhookOptions } from './http-options.js';
import { keyOf, verifyWebhook, type WebhookOptions } from './webhook.js';

/** A request, independent of the framework. */
export interface HttpRequest {
  readonly method: string;
  /** As sent: neither decoded nor resolved, and without the query string. */
  readonly path: string;
  /** The value of a header, by its name in lower case. */
  readonly header: (name: string) => string | undefined;
  readonly query: (name: string) => string | undefined;
  /** The request of the framework: that of Express or Fastify, or the context of Koa or Hono. */
  readonly raw?: unknown;
  /** Reads the body. Fails with `BodyTooLargeError` beyond the limit. */
  readonly body: (limit: number) => Promise<Uint8Array>;
}

export interface HttpAnswer {
  readonly status: number;
  /** JSON. */
  readonly text: string;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** What `args` and `keyScope` see of a request. */
export interface RouteRequest extends Pick<HttpRequest, 'path' | 'header' | 'query' | 'raw'> {
  readonly parameters: Readonly<Record<string, string>>;
}

export interface StartOptions {
  /** The arguments of the workflow, the same for the same request. Default: the JSON body. */
  readonly args?: (body: unknown, request: RouteRequest) => unknown[] | Promise<unknown[]>;
  /** The queue for the workflow. Default: none, it starts at once. */
  readonly queueName?: string;
  /** The largest body in bytes. Default: 1 MiB. */
  readonly bodyLimit?: number;
}

/** The options of routes that take idempotency keys. */
export interface KeyedOptions extends StartOptions {
  /** Who the caller is. Callers with different scopes can use the same idempotency key. Default: all are one. */
  readonly keyScope?: (request: RouteRequest) => string | Promise<string>;
}

export interface RunOptions extends KeyedOptions {
  /** How long to wait for the result before answering with the ID only. Default: 30000. */
  readonly timeoutMs?: number | DurationText;
}

export type WebhookRouteOptions = StartOptions & WebhookOptions;

type Workflow = (...args: never[]) => Promise<unknown>;
type Handler = (request: HttpRequest, parameters: Readonly<Record<string, string>>) => Promise<Answer>;

interface KeyedStart {
  readonly path: string;
  readonly workflow: Workflow;
  readonly options: KeyedOptions;
}

interface Route {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly pattern: RegExp;
  readonly handle: Handler;
}

const KEY_HEADERS = ['dbos-idempotency-key', 'idempotency-key'] as const;
const KEY_LENGTH_MAX = 255;
const BODY_LIMIT = 1024 * 1024;
const RUN_MS = 30_000;
const EVENT_SECONDS = 10;
const EVENT_SECONDS_MAX = 60;

/** An error with an HTTP status. */
export class HttpError extends Error {
  static {
    recognizeCopies(this, 'HttpError');
  }

  constructor(
    readonly status: number,
    readonly reason: string,
  ) {
    super(reason);
  }
}

export class BodyTooLargeError extends HttpError {
  constructor() {
    super(413, 'body_too_large');
  }
}

/** Routes to mount in a web framework. */
export class WorkflowRoutes {
  readonly #host: HttpInstance;
  readonly #routes: Route[] = [];

  /** `dbos` is the instance that has the workflows. Default: `DBOS`. */
  constructor({ dbos }: { readonly dbos?: HttpInstance } = {}) {
    this.#host = receivingHost(dbos);
  }

  /** For frameworks that need each route registered. */
  get list(): readonly Pick<Route, 'method' | 'path'>[] {
    return this.#routes;
  }

  /** `POST`: starts the workflow and answers 202 with its ID. */
  start(path: string, workflow: Workflow, options: KeyedOptions = {}): this {
    startOptions.read(options, 'options');
    return this.#add('POST', path, async (request, parameters) => {
      const { workflowID } = await this.#startByKey({ path, workflow, options }, { ...request, parameters });
      return { status: 202, body: { workflowID } };
    });
  }

  /** `POST`: starts the workflow and answers 200 with its result, or 202 if that takes too long. */
  run(path: string, workflow: Workflow, options: RunOptions = {}): this {
    runOptions.read(options, 'options');
    return this.#add('POST', path, async (request, parameters) => {
      const handle = await this.#startByKey({ path, workflow, options }, { ...request, parameters });
      return this.#resultOf(handle, inMs(options.timeoutMs) ?? RUN_MS);
    });
  }

  /** `POST`: starts the workflow for a signed webhook, once per webhook, and answers 202. */
  webhook(path: string, workflow: Workflow, options: WebhookRouteOptions): this {
    webhookOptions.read(options, 'options');
    for (const secret of [options.secrets].flat()) keyOf(secret);
    return this.#add('POST', path, async (request, parameters) => {
      const body = await request.body(options.bodyLimit ?? BODY_LIMIT);
      const [id, timestamp, signature] = ['id', 'timestamp', 'signature'].map((name) =>
        request.header(`webhook-${name}`),
      );
      const webhookID = verifyWebhook({ id, timestamp, signature, body }, options, nowOf(this.#host));
      const functionName = workflowNameOf(this.#host, workflow);
      const workflowID = workflowIDFor({ kind: 'webhook', path, functionName }, webhookID);
      const args = await argsOf(options, parseJSON(body), { ...request, parameters });
      await this.#start(workflow, args, { ...options, workflowID });
      return { status: 202, body: { workflowID } };
    });
  }

  /** `GET`, with `:workflowID` in the path: the state of a workflow, without its arguments and result. */
  status(path: string): this {
    return this.#add('GET', path, async (_, { workflowID = '' }) => {
      const found = await this.#host.getWorkflowStatus(workflowID);
      if (!found) throw new HttpError(404, 'workflow_not_found');
      const { status, workflowName, createdAt, updatedAt } = found;
      return { status: 200, body: { workflowID, workflowName, status, createdAt, updatedAt } };
    });
  }

  /** `GET`, with `:workflowID` and `:key` in the path: an event. Waits up to `?timeoutSeconds=`, 10 by default. */
  event(path: string): this {
    return this.#add('GET', path, async (request, { workflowID = '', key = '' }) => {
      const seconds = Number(request.query('timeoutSeconds') ?? EVENT_SECONDS);
      if (!(seconds >= 0 && seconds <= EVENT_SECONDS_MAX)) throw new HttpError(400, 'invalid_timeout');
      if (!(await this.#host.getWorkflowStatus(workflowID))) throw new HttpError(404, 'workflow_not_found');
      const value = await this.#host.getEvent(workflowID, key, seconds);
      if (value === null) throw new HttpError(404, 'event_not_set');
      return { status: 200, body: { workflowID, key, value } };
    });
  }

  /** Answers a request; undefined if no route matches its path. Refuses ambiguous paths, also those of no route. */
  async answer(request: HttpRequest): Promise<HttpAnswer | undefined> {
    if (isAmbiguousPath(request.path)) return toText({ status: 400, body: { error: 'invalid_path' } });
    const matching = this.#routes.filter(({ pattern }) => pattern.test(request.path));
    if (matching.length === 0) return undefined;
    const route = matching.find(({ method }) => method === request.method);
    try {
      if (!route) throw new HttpError(405, 'method_not_allowed');
      return toText(await route.handle(request, decodeParameters(route.pattern.exec(request.path)?.groups)));
    } catch (error) {
      return toText(this.#answerTo(error));
    }
  }

  #add(method: Route['method'], path: string, handle: Handler): this {
    const escaped = path.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const pattern = new RegExp(`^${escaped.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}/?$`);
    this.#routes.push({ method, path, pattern, handle });
    return this;
  }

  /** Starts the workflow under the ID that the idempotency key stands for, if the request has one. */
  async #startByKey({ path, workflow, options }: KeyedStart, request: HttpRequest & RouteRequest) {
    const key = idempotencyKeyOf(request);
    const body = await readJSON(request, options.bodyLimit);
    const args = await argsOf(options, body, request);
    if (key === undefined) return this.#start(workflow, args, options);
    const functionName = workflowNameOf(this.#host, workflow);
    const scope = options.keyScope && checkedScope(await options.keyScope(request));
    const workflowID = workflowIDFor({ kind: 'http', path, functionName, scope }, key);
    const handle = await this.#start(workflow, args, { ...options, workflowID });
    if (await hasArguments(this.#host, workflowID, args)) return handle;
    throw new HttpError(422, 'idempotency_key_reused');
  }

  #start(
    workflow: Workflow,
    args: readonly unknown[],
    { workflowID, queueName }: { readonly workflowID?: string; readonly queueName?: string },
  ): Promise<StartedWorkflow> {
    // The arguments come from the request: types can't check them.
    const start = workflow as (...args: unknown[]) => Promise<unknown>;
    return this.#host.startWorkflow(start, { workflowID, queueName })(...args);
  }

  async #resultOf(handle: StartedWorkflow, timeoutMs: number): Promise<Answer> {
    const { workflowID } = handle;
    const accepted = { status: 202, body: { workflowID } };
    const outcome = handle.getResult().then(
      (result) => ({ status: 200, body: { workflowID, result: result ?? null } }),
      // The workflow's error may hold anything, so it is not sent. It can be looked up by ID.
      () => ({ status: 500, body: { workflowID, error: 'workflow_failed' } }),
    );
    return valueWithin<Answer>(this.#host, outcome, timeoutMs, accepted);
  }

  #answerTo(error: unknown): Answer {
    if (error instanceof HttpError) return { status: error.status, body: { error: error.reason } };
    if (error instanceof WebhookVerificationError) return { status: 401, body: { error: 'invalid_signature' } };
    if (error instanceof DBOSNotAuthorizedError) return { status: 403, body: { error: 'not_authorized' } };
    if (error instanceof SerializationError) return { status: 422, body: { error: 'unstorable_arguments' } };
    // Before the launch, or while the process shuts down.
    if (error instanceof DBOSExecutorNotInitializedError) return { status: 503, body: { error: 'unavailable' } };
    this.#host.logger.error(error);
    return { status: 500, body: { error: 'internal_error' } };
  }
}

function toText({ status, body }: Answer): HttpAnswer {
  return { status, text: JSON.stringify(body) };
}

function argsOf(options: StartOptions, body: unknown, request: RouteRequest): unknown[] | Promise<unknown[]> {
  return options.args ? options.args(body, request) : [body];
}

function idempotencyKeyOf({ header }: HttpRequest): string | undefined {
  const key = KEY_HEADERS.map(header).find((value) => value !== undefined);
  if (key === undefined || (key.trim() !== '' && key.length <= KEY_LENGTH_MAX)) return key;
  throw new HttpError(400, 'invalid_idempotency_key');
}

async function readJSON(request: HttpRequest, limit = BODY_LIMIT): Promise<unknown> {
  const type = request.header('content-type');
  if (type !== undefined && !/^application\/(?:[\w.+-]+\+)?json\b/i.test(type)) {
    throw new HttpError(415, 'json_expected');
  }
  return parseJSON(await request.body(limit));
}

function parseJSON(body: Uint8Array): unknown {
  if (body.length === 0) return undefined;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as unknown;
  } catch {
    // Not valid UTF-8, or not JSON.
    throw new HttpError(400, 'invalid_json');
  }
}

function decodeParameters(groups: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decodeParameter(value)]));
}

function decodeParameter(encoded: string): string {
  try {
    return filledName.read(decodeURIComponent(encoded), 'parameter');
  } catch {
    // A stray percent sign, a NUL, or longer than any ID.
    throw new HttpError(400, 'invalid_path');
  }
}
