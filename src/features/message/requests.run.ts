// Requests to running workflows, with one answer each. A request is a message and its answer an event of the workflow.
// Both are durable and recorded, so either side may crash and recover.
import { type DurationText, inMs } from '../../kernel/base/duration.js';
import { newID } from '../../kernel/base/ids.js';
import { DBOSRequestRefusedError, DBOSRequestTimeoutError } from '../../kernel/errors/errors.js';
import { storableName } from '../../kernel/check/validation.js';
import type { StoredEvent } from './events.sql.js';
import { currentContext, isWorkflowCode } from '../../run/ambient.js';
import type { Runtime } from '../../run/runtime.js';
import { setEvent } from './events.run.js';
import { validate } from '../../run/registration/input-schema.js';
import { receive, send, sendFrom } from './messages.run.js';
import { limitsOf, refuseInTransaction, workflowCode } from '../../run/operation.js';
import { own, perform } from '../../run/perform.js';
import type { InputSchema } from '../../run/registration/registry.js';
import type { Run } from '../../run/run.js';
import { checkName, type SerializationOptions } from '../../operator/storable.js';
import { deadlineOf, pollMsOf, timeoutCheck, type TimeLimit } from '../../operator/time-limit.js';
import type { WaitLimits } from '../../operator/row-watcher.js';

/** The signature of a request: its payload and its answer. */
export type RequestFunction = (payload: never) => unknown;

/** A request as its handler sees it. */
export interface IncomingRequest {
  readonly requestID: string;
  /** Makes `handleRequests` return once this request is answered. */
  stop(): void;
}

type Handle<F extends RequestFunction> = (
  payload: Parameters<F>[0],
  request: IncomingRequest,
) => ReturnType<F> | Promise<Awaited<ReturnType<F>>>;

/** The handlers of a workflow, by request name: a function, or a function with a schema for its payload. */
export type RequestHandlers<Requests extends Record<string, RequestFunction>> = {
  readonly [Name in keyof Requests]:
    Handle<Requests[Name]> | { readonly schema: InputSchema; readonly handle: Handle<Requests[Name]> };
};

type AnyRequestHandlers = RequestHandlers<Record<string, RequestFunction>>;

export interface RequestOptions extends SerializationOptions {
  /** How long to wait for the answer. Default: 60000. */
  readonly timeoutMs?: number | DurationText;
  /** A repeated request with the same key is the same request and gets the same answer. */
  readonly idempotencyKey?: string;
}

export interface Request extends RequestOptions {
  readonly workflowID: string;
  readonly name: string;
  readonly payload: unknown;
}

/** The content of a request's message. */
interface RequestMessage {
  readonly requestID: string;
  readonly name: string;
  readonly payload: unknown;
}

/** The content of an answer's event: the encoded value or error. */
interface Answer {
  readonly ok: boolean;
  readonly text: string;
  readonly serialization: string;
}

const TOPIC = '__everstep_requests__';
const TIMEOUT_MS = 60_000;

function answerKey(requestID: string): string {
  return `__everstep_answer__:${requestID}`;
}

/** Answers requests one by one, in workflow code, until a handler calls `stop` or none arrives in time. */
export async function handleRequests(handlers: AnyRequestHandlers, limit?: TimeLimit): Promise<'stopped' | 'timeout'> {
  const run = workflowCode('DBOS.handleRequests');
  let isStopped = false;
  while (!isStopped) {
    const deadlineAt = deadlineOf(run.runtime.databaseClock, limit);
    const message = await receive(run, TOPIC, { deadlineAt, pollMs: pollMsOf(limit) });
    if (message === null) return 'timeout';
    // Any sender can send anything to the topic: skip what is not a request.
    if (!isRequest(message)) continue;
    const { requestID } = message;
    const incoming = { requestID, stop: () => (isStopped = true) };
    const answer = await answerTo(run, handlers, { ...message, incoming });
    await setEvent(answerKey(requestID), answer, { serializationType: 'portable' });
  }
  return 'stopped';
}

function isRequest(message: unknown): message is RequestMessage {
  const { requestID, name } = message as Partial<RequestMessage>;
  return typeof requestID === 'string' && storableName.accepts(answerKey(requestID)) && typeof name === 'string';
}

async function answerTo(
  run: Run,
  handlers: AnyRequestHandlers,
  { name, payload, incoming }: RequestMessage & { readonly incoming: IncomingRequest },
): Promise<Answer> {
  const { codec } = run.runtime;
  const format = run.isPortable ? 'portable' : undefined;
  try {
    const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined;
    if (!handler) throw new DBOSRequestRefusedError(run.workflowID, name, 'it has no handler for it at the moment.');
    const { handle, schema } = typeof handler === 'function' ? { handle: handler, schema: undefined } : handler;
    const accepted = schema ? await validate(schema, payload, `The payload of request "${name}" is`) : payload;
    const value: unknown = await handle(accepted as never, incoming);
    return { ok: true, ...(await codec.encodeValue(value, format)) };
  } catch (error) {
    // If the run was stopped, that is not an answer.
    run.check();
    return { ok: false, ...(await codec.encodeError(error, { format })) };
  }
}

/** Sends a request and returns the answer. In workflow code it takes three numbers: request, answer, timer. */
export async function request(runtime: Runtime, asked: Request): Promise<unknown> {
  const { name } = asked;
  const timeoutMs = inMs(asked.timeoutMs) ?? TIMEOUT_MS;
  const context = currentContext();
  refuseInTransaction(context, 'DBOS.request');
  checkName('name', name);
  timeoutCheck.read(timeoutMs, 'timeoutMs');
  const deadlineAt = deadlineOf(runtime.databaseClock, timeoutMs / 1000);
  const requestID = asked.idempotencyKey ?? newID();
  checkName('idempotencyKey', answerKey(requestID));
  if (isWorkflowCode(context)) return requestFrom(context.run, asked, { requestID, deadlineAt });
  await send(runtime, messageOf(asked, requestID));
  return awaitAnswer(runtime, asked, requestID, { deadlineAt, signal: context?.run?.signal });
}

async function requestFrom(
  run: Run,
  asked: Request,
  { requestID, deadlineAt }: { readonly requestID: string; readonly deadlineAt: number | undefined },
): Promise<unknown> {
  const sent = sendFrom(run, { name: 'DBOS.request', output: JSON.stringify(requestID) }, messageOf(asked, requestID));
  const stepID = run.nextStepID();
  const timerID = run.nextStepID();
  // On replay, the ID of the recorded request.
  const recordedID = String(await sent);
  const answer = own(async () =>
    awaitAnswer(run.runtime, asked, recordedID, await limitsOf(run, timerID, { deadlineAt })),
  );
  return perform(run, { name: 'DBOS.answer', stepID, timerID, isEffect: false }, answer);
}

function messageOf({ workflowID, name, payload, serializationType }: Request, requestID: string) {
  const message: RequestMessage = { requestID, name, payload };
  return { destinationID: workflowID, message, topic: TOPIC, idempotencyKey: requestID, serializationType };
}

/** Waits for the answer, or until there can be none because the workflow has ended. */
async function awaitAnswer(
  runtime: Runtime,
  { workflowID, name, timeoutMs = TIMEOUT_MS }: Request,
  requestID: string,
  limits: WaitLimits,
): Promise<unknown> {
  const { outcomes, events } = runtime.watchers;
  const event = { workflowID, key: answerKey(requestID) };
  const over = new AbortController();
  const signal = limits.signal ? AbortSignal.any([limits.signal, over.signal]) : over.signal;
  const answered = events.waitUntil(event, { ...limits, signal });
  const ended = outcomes.wait({ workflowID }, { signal });
  for (const wait of [answered, ended]) wait.catch(() => {});
  try {
    const first = await Promise.race([answered, ended]);
    if (!first) throw new DBOSRequestTimeoutError(workflowID, name, inMs(timeoutMs));
    if ('text' in first) return await readAnswer(runtime, first);
    const last = await events.waitUntil(event, { deadlineAt: 0 });
    if (last) return await readAnswer(runtime, last);
    const end = first.status === null ? 'was deleted' : `has ended with status ${first.status}`;
    throw new DBOSRequestRefusedError(workflowID, name, `it ${end}.`);
  } finally {
    over.abort();
  }
}

async function readAnswer({ codec }: Runtime, { text, serialization }: StoredEvent): Promise<unknown> {
  const answer = (await codec.decodeValue(text, serialization)) as Answer;
  if (answer.ok) return codec.decodeValue(answer.text, answer.serialization);
  throw await codec.decodeError(answer.text, answer.serialization);
}
