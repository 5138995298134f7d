import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { webhook } from '../../../src/plugins/outbox/relays/webhook.js';
import { verifyWebhook } from '../../../src/plugins/receiver/http/webhook.js';
import { until } from '../../crash/processes.js';
import { type Arrived, describeTarget, isEmpty, publish, relaying, sendTo } from './relay-conformance.js';
import { pending } from './scene.js';

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;

/** A server that verifies what it gets. */
class Endpoint {
  readonly arrived: Arrived[] = [];
  readonly attempts: string[] = [];
  respond: (response: ServerResponse) => void = (response) => void response.writeHead(204).end();
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}/hook`;
  }

  async start(): Promise<void> {
    this.#server = createServer((request, response) => void this.#handle(request, response));
    await new Promise<void>((resolve) => this.#server?.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const headers = request.headers as Record<string, string>;
    const id = verifyWebhook(
      {
        id: headers['webhook-id'],
        timestamp: headers['webhook-timestamp'],
        signature: headers['webhook-signature'],
        body,
      },
      { secrets: SECRET },
      Date.now(),
    );
    this.attempts.push(id);
    this.respond(response);
    if (response.statusCode < 300) this.arrived.push({ messageID: id, body, headers });
  }
}

describe('a webhook', () => {
  let endpoint: Endpoint;
  const all: Endpoint[] = [];
  beforeEach(async () => {
    endpoint = new Endpoint();
    all.push(endpoint);
    await endpoint.start();
  });
  afterAll(() => Promise.all(all.map((one) => one.stop())));

  describeTarget({
    name: 'webhook',
    async place() {
      const { arrived, url } = endpoint;
      return { target: webhook({ url, secret: SECRET }), arrived: async () => arrived };
    },
    async nowhere() {
      endpoint.respond = (response) => void response.writeHead(404).end();
      return webhook({ url: endpoint.url, secret: SECRET });
    },
    stop: () => endpoint.stop(),
    start: () => endpoint.start(),
  });

  test('is sent again when Retry-After says', async () => {
    endpoint.respond = (response) => void response.writeHead(429, { 'retry-after': '3600' }).end('busy');
    const scene = await relaying(webhook({ url: endpoint.url, secret: SECRET }));

    await publish(scene, [1]);
    await until('it was put off', async () => {
      const [row] = await pending(scene);
      return Number(row?.['attempts_count']) === 1;
    });

    const [row] = await pending(scene);
    expect(Number(row?.['next_attempt_at'])).toBeGreaterThan(Date.now() + 3_500_000);
  });

  test('is not sent to an endpoint that has answered 410', async () => {
    endpoint.respond = (response) => void response.writeHead(410).end();
    const scene = await relaying(webhook({ url: endpoint.url, secret: SECRET }));

    await publish(scene, [1]);
    await isEmpty(scene);
    await publish(scene, [2, 3]);
    await isEmpty(scene);

    expect(endpoint.attempts).toHaveLength(1);
    expect((await scene.outbox.dlq.list()).letters.map(({ reason }) => reason)).toEqual(Array(3).fill('rejected'));
  });

  test('does not follow a redirect, and gives up waiting for an answer', async () => {
    endpoint.respond = (response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end();
    const redirected = await relaying(webhook({ url: endpoint.url, secret: SECRET }), { retry: () => undefined });
    await publish(redirected, [1]);
    await isEmpty(redirected);
    endpoint.respond = () => {};
    const silent = webhook({ url: endpoint.url, secret: SECRET, timeout: 50 });

    const result = await sendTo(silent);

    expect((await redirected.outbox.dlq.list()).letters).toMatchObject([{ reason: 'retry_terminal' }]);
    expect(result.kind).toBe('unavailable');
  });

  test.each([
    ['has a header that HTTP does not have', { headers: { 'ce-a b': '1' } }, 'rejected'],
    ['has a header with a line break in its name', { headers: { 'ce-a\r\nb': '1' } }, 'rejected'],
    ['has a content type with a line break', { headers: { 'content-type': 'a\r\nb' } }, 'rejected'],
    ['is too large for the endpoint', { headers: { 'ce-answer': '413' } }, 'retry_terminal'],
    ['the endpoint hangs up on', { headers: { 'ce-answer': 'none' } }, 'retry_terminal'],
  ])('a message that %s does not hold up the others', async (_, options, reason) => {
    const { url, arrived } = endpoint;
    endpoint.respond = (response) => {
      const answer = response.req.headers['ce-answer'];
      if (answer === 'none') response.statusCode = 500;
      if (answer === 'none') response.destroy();
      else response.writeHead(Number(answer ?? 204)).end();
    };
    const scene = await relaying(webhook({ url, secret: SECRET }), { retry: () => undefined });

    const { source, outbox } = scene;
    await source.runTransaction(() => outbox.publish('order.placed', Buffer.from('bad'), { ...options, key: 'bad' }), {
      name: 'publish',
    });
    await until('it was tried', async () => (await pending(scene)).every((row) => row['acquired_token'] === null));
    await publish(
      scene,
      Array.from({ length: 50 }, (_, n) => n),
    );
    await isEmpty(scene);

    expect(arrived).toHaveLength(50);
    expect((await outbox.dlq.list()).letters).toMatchObject([{ topic: 'order.placed', key: 'bad', reason }]);
  });

  test('needs a URL and a secret that are some', () => {
    expect(() => webhook({ url: 'ftp://x', secret: SECRET })).toThrow('https://');
    expect(() => webhook({ url: endpoint.url, secret: 'short' })).toThrow('secret');
    expect(() => webhook({ url: endpoint.url, secret: SECRET, concurrency: 0 })).toThrow('concurrency');
    expect(() => webhook({ url: endpoint.url, secret: SECRET, headers: { 'a b': 'c' } })).toThrow('headers');
  });
});

test('a relay refuses what is no target', async () => {
  await expect(relaying({ name: 'none' } as never)).rejects.toThrow('needs a target');
  await expect(
    relaying(webhook({ url: 'http://127.0.0.1:1', secret: SECRET }), { envelope: {} as never }),
  ).rejects.toThrow('cloudEvents');
});
