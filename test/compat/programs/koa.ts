// A published plugin that serves HTTP, with decorators on classes, methods and parameters.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ArgName, DBOS } from '@dbos-inc/dbos-sdk';
import { ArgRequired, ArgVarchar, DBOSKoa, DefaultArgRequired } from '@dbos-inc/koa-serve';
import { configure, print, within } from '../program.js';

const koa = new DBOSKoa();

@DefaultArgRequired
class Shop {
  @koa.getApi('/hello/:who')
  static async hello(who: string): Promise<string> {
    return `hello ${who}, ${DBOS.getRequest()?.method} ${DBOS.request.url}`;
  }

  @koa.postApi('/order')
  @DBOS.workflow()
  static async order(@ArgRequired item: string, @ArgVarchar(5) note?: string): Promise<string> {
    return `${DBOS.workflowID ? 'workflow' : 'plain'} ${item} ${note ?? ''}`;
  }

  @koa.getApi('/renamed')
  static async renamed(@ArgName('given') own: string): Promise<string> {
    return own;
  }

  @koa.getApi('/vault')
  @DBOS.requiredRole(['owner'])
  static async vault(): Promise<string> {
    return 'open';
  }
}

void Shop;

async function main(): Promise<void> {
  configure();
  await DBOS.launch();
  // DBOS's own spans lack a context without OpenTelemetry, which is not installed.
  const { tracer } = DBOS;
  const startSpan = tracer?.startSpan.bind(tracer);
  const spanContext = (): object => ({});
  if (tracer && startSpan) {
    tracer.startSpan = (name, attributes) => Object.assign(startSpan(name, attributes), { spanContext });
  }
  koa.createApp();
  const server = createServer(koa.app?.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const call = async (path: string, init?: RequestInit): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    const text = await response.text();
    return [
      response.status,
      text.startsWith('{') ? (JSON.parse(text) as { message: string }).message.split('.')[0] : text,
    ];
  };
  const post = (body: object, headers = {}): RequestInit => ({
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  });

  const found = await within({
    'a plain method': () => call('/hello/ann'),
    'a workflow': () => call('/order', post({ item: 'pen', note: 'new' })),
    'a workflow under an ID': async () => [
      await call('/order', post({ item: 'ink', note: 'x' }, { 'dbos-idempotency-key': 'given' })),
      (await DBOS.getWorkflowStatus('given'))?.status,
    ],
    'a missing argument': () => call('/order', post({ note: 'new' })),
    'an argument that is too long': () => call('/order', post({ item: 'pen', note: 'far too long' })),
    'a renamed argument': () => call('/renamed?given=x'),
    'a required role': () => call('/vault'),
    'what the plugin knows': async () =>
      DBOS.getAssociatedInfo(koa).map(({ methodReg, classConfig, paramConfig }) => ({
        name: methodReg.name,
        classConfig,
        defaults: methodReg.defaults?.name ?? methodReg.defaults?.constructor.name,
        parameters: paramConfig.map(({ name }) => name),
        types: methodReg.args.map((one) => one.dataType?.formatAsString()),
      })),
  });
  server.close();
  server.closeAllConnections();
  await DBOS.shutdown();
  print(found);
}

void main();
