// A TCP proxy in front of Postgres that can fail in the ways a network does.
import { connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Proxy {
  /** The given URL, through the proxy. */
  readonly url: string;
  /**
   * Lets the next request through to the server, or the next one that matches, but cuts the connection instead of
   * delivering the answer.
   */
  loseNextAnswer(to?: RegExp): void;
  /** How many answers were lost. */
  readonly losses: number;
  /** Cuts the connection at the next request, before the server has seen it. */
  loseNextRequest(matching?: RegExp): void;
  /**
   * Cuts the connection at the next request that matches, for the client only: the request is kept, and `deliver` lets the
   * server have it late.
   */
  holdNextRequest(matching?: RegExp): void;
  /** Delivers the request that was held. Resolves when the server has answered. */
  deliver(): Promise<void>;
  /**
   * Passes on the next request that matches, and keeps what is answered to its connection, which lasts whatever becomes of the
   * server, until `releaseAnswer`.
   */
  holdNextAnswer(matching?: RegExp): void;
  releaseAnswer(): void;
  /** Passes on the next request that matches, and cuts the connection for the client only: the server keeps at it. */
  abandonNextRequest(matching?: RegExp): void;
  /** From now on, nothing more passes the connections of this moment, in either direction. None of them is closed. */
  swallow(): void;
  /** The same for the connection of the next request that matches, from that request on. */
  swallowNextRequest(matching?: RegExp): void;
  /** Whether a request is held. */
  readonly isHolding: boolean;
  /** Whether what was to be lost is lost. */
  readonly hasStruck: boolean;
  /** Cuts all connections and refuses new ones, until `restore`. */
  cut(): void;
  restore(): void;
  /** Cuts all connections. New ones go to the server of this URL. */
  switchTo(targetURL: string): void;
}

/** What a request has to hold to be lost. */
const ANYTHING = /(?:)/;

type Fault =
  | 'none'
  | 'lose-answer'
  | 'hold-answer'
  | 'lose-request'
  | 'hold-request'
  | 'abandon-request'
  | 'swallow-request'
  | 'refuse';

/** Starts a proxy in front of the server of `targetURL`; it is closed when the test ends. */
export async function startProxy(targetURL: string): Promise<Proxy> {
  let target = new URL(targetURL);
  const sockets = new Set<Socket>();
  let fault: Fault = 'none';
  let pattern = ANYTHING;
  let losses = 0;
  /** Connections that nothing passes any more. */
  const silent = new WeakSet<Socket>();
  let heldAnswer: { readonly client: Socket; readonly chunks: Buffer[] } | undefined;
  let held: { readonly upstream: Socket; readonly request: Buffer } | undefined;

  const server: Server = createServer((client) => {
    if (fault === 'refuse') return client.destroy();
    const upstream = connect(Number(target.port), target.hostname);
    let isLosingAnswer = false;
    let isAbandoned = false;
    const close = (): void => {
      if (heldAnswer?.client === client) return;
      client.destroy();
      if (!isAbandoned) upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('close', () => {
        sockets.delete(socket);
        close();
      });
      socket.on('error', close);
    }
    client.on('data', (chunk) => {
      if (silent.has(client)) return;
      const isMeant = pattern.test(chunk.toString('latin1'));
      if (fault === 'swallow-request' && isMeant) {
        fault = 'none';
        return void silent.add(client);
      }
      if (fault === 'lose-request' && isMeant) {
        fault = 'none';
        return close();
      }
      if ((fault === 'hold-request' || fault === 'abandon-request') && isMeant) {
        isAbandoned = true;
        if (fault === 'hold-request') held = { upstream, request: chunk };
        else upstream.write(chunk);
        fault = 'none';
        return close();
      }
      if (fault === 'hold-answer' && isMeant) {
        fault = 'none';
        heldAnswer = { client, chunks: [] };
      }
      if (fault === 'lose-answer' && isMeant) {
        fault = 'none';
        losses += 1;
        isLosingAnswer = true;
      }
      upstream.write(chunk);
    });
    // The server answers a statement after it has committed it.
    upstream.on('data', (chunk) => {
      if (heldAnswer?.client === client) heldAnswer.chunks.push(chunk);
      else if (isLosingAnswer) close();
      else if (!isAbandoned && !silent.has(client)) client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  const arm = (next: Fault, to: RegExp): void => {
    fault = next;
    pattern = to;
  };
  const url = new URL(targetURL);
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.toString(),
    get losses() {
      return losses;
    },
    get isHolding() {
      return held !== undefined;
    },
    get hasStruck() {
      return fault === 'none';
    },
    loseNextAnswer: (to = ANYTHING) => arm('lose-answer', to),
    loseNextRequest: (matching = ANYTHING) => arm('lose-request', matching),
    holdNextRequest: (matching = ANYTHING) => arm('hold-request', matching),
    holdNextAnswer: (matching = ANYTHING) => arm('hold-answer', matching),
    releaseAnswer() {
      const { client, chunks } = heldAnswer ?? { chunks: [] };
      heldAnswer = undefined;
      client?.write(Buffer.concat(chunks));
    },
    abandonNextRequest: (matching = ANYTHING) => arm('abandon-request', matching),
    swallow() {
      for (const socket of sockets) silent.add(socket);
    },
    swallowNextRequest: (matching = ANYTHING) => arm('swallow-request', matching),
    async deliver() {
      if (!held) throw new Error('No request is held.');
      const { upstream, request } = held;
      held = undefined;
      // The server has ended the session meanwhile.
      if (upstream.destroyed || upstream.readableEnded) return;
      const answered = new Promise<void>((resolve) => {
        upstream.once('data', () => resolve());
        upstream.once('close', () => resolve());
      });
      upstream.write(request);
      await answered;
      upstream.destroy();
    },
    cut() {
      fault = 'refuse';
      for (const socket of sockets) socket.destroy();
    },
    restore: () => (fault = 'none'),
    switchTo(nextURL) {
      target = new URL(nextURL);
      for (const socket of sockets) if (socket !== heldAnswer?.client) socket.destroy();
    },
  };
}
