// An engine with a few workflows, and its HTTP interface, called without a server.
import { onTestFinished } from 'vitest';
import { type Admin, type AdminOptions, createAdmin } from '../../../src/faces/http/admin.js';
import type { AdminSource } from '../../../src/faces/http/source.js';
import { internals } from '../../../src/kernel/base/internals.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import { DBOSExecutorNotInitializedError } from '../../../src/kernel/errors/errors.js';
import type { TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';

export const TOKEN = 'token-of-the-test';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed, if it is JSON. */
  // Tests look into answers of every shape.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any;
}

export type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>;

/** Calls the interface as a client that has the token. */
export function callerOf(fetch: Admin['fetch'], origin = 'http://localhost'): Call {
  return async (method, path, body, headers = {}) => {
    const request = new Request(origin + path, {
      method,
      headers: {
        authorization: `Bearer ${TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    return readAnswer(await fetch(request));
  };
}

export async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJSON = response.headers.get('content-type')?.startsWith('application/json') && text !== '';
  return { status: response.status, headers: response.headers, body: isJSON ? JSON.parse(text) : text };
}

/** The interface of an instance that was not launched: enough for all that comes before the database. */
export function setupWithoutEngine(options: Partial<AdminOptions> = {}): { admin: Admin; call: Call } {
  const source: AdminSource = {
    [internals]: {
      get operator(): never {
        throw new DBOSExecutorNotInitializedError();
      },
    },
  };
  const admin = createAdmin({ source, token: TOKEN, ...options });
  return { admin, call: callerOf(admin.fetch) };
}

export async function setup(dialect: TestDialect, options: Partial<AdminOptions> = {}, config?: Partial<DBOSConfig>) {
  const { DBOS, url } = await createEngine(dialect, config);
  DBOS.registerWorkflow(async (a: number, b: number) => a + b, { name: 'add' });
  DBOS.registerWorkflow(async () => DBOS.recv<string>('topic', 600), { name: 'receive' });
  DBOS.registerWorkflow(
    async () => {
      await DBOS.runStep(async () => 'done', { name: 'first' });
      throw new Error('It failed.');
    },
    { name: 'fail' },
  );
  DBOS.registerWorkflow(
    async () => {
      await DBOS.setEvent('when', new Date(0));
      await DBOS.writeStream('numbers', 1n);
      await DBOS.closeStream('numbers');
      await DBOS.runStep(async () => new Map([['key', new Set([1])]]), { name: 'map' });
      return { at: new Date(0), big: 12n };
    },
    { name: 'tell' },
  );
  DBOS.registerWorkflow(async (at: Date, context: unknown) => ({ at, context }), { name: 'tick' });
  await DBOS.launch();
  await DBOS.registerQueue('q');
  const admin = createAdmin({ source: DBOS, token: TOKEN, ...options });
  onTestFinished(() => admin.close());
  const call = callerOf(admin.fetch);
  /** Enqueues a workflow and gives its ID. */
  const enqueue = async (workflowName: string, options: object = {}): Promise<string> => {
    const { body } = await call('POST', '/api/v1/workflows', { queueName: 'q', workflowName, ...options });
    return (body as { workflowID: string }).workflowID;
  };
  /** Enqueues a workflow and waits for its end. */
  const run = async (workflowName: string, options: object = {}): Promise<string> => {
    const workflowID = await enqueue(workflowName, options);
    await DBOS.waitAll([DBOS.retrieveWorkflow(workflowID)]);
    return workflowID;
  };
  return { DBOS, url, admin, call, enqueue, run };
}
