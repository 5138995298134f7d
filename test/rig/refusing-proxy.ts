// A proxy in front of Postgres that makes of it a server that lacks something: statements that match a pattern are answered
// with a syntax error. It replaces their text, and lets the server refuse what is left.
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface RefusingProxy {
  /** The given URL, through the proxy. */
  readonly url: string;
  /** The texts that were refused since the last call. */
  takeRefused(): string[];
}

/** Starts a proxy that refuses matching statements, but for what is in comments and in the bodies of functions. */
export async function startRefusingProxy(targetURL: string, pattern: RegExp): Promise<RefusingProxy> {
  const target = new URL(targetURL);
  const sockets = new Set<Socket>();
  let refused: string[] = [];
  const isRefused = (text: string): boolean => {
    const isMatching = pattern.test(text.replace(/\$(\w*)\$[^]*?\$\1\$|--[^\n]*/g, ''));
    if (isMatching) refused.push(text);
    return isMatching;
  };
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    const rewrite = messageRewriter(isRefused);
    client.on('data', (chunk) => {
      for (const message of rewrite(chunk)) upstream.write(message);
    });
    upstream.pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = new URL(targetURL);
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.href,
    takeRefused() {
      const taken = refused;
      refused = [];
      return taken;
    },
  };
}

const QUERY = 0x51;
const PARSE = 0x50;
const REFUSED = 'REFUSED';

/** Cuts the bytes of a client into messages, and replaces the texts that are refused. The first message has no type. */
function messageRewriter(isRefused: (text: string) => boolean): (chunk: Buffer) => Buffer[] {
  let rest = Buffer.alloc(0);
  let hasStarted = false;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    const messages: Buffer[] = [];
    for (;;) {
      const headSize = hasStarted ? 5 : 4;
      if (rest.length < headSize) return messages;
      const size = rest.readInt32BE(headSize - 4) + headSize - 4;
      if (rest.length < size) return messages;
      const message = rest.subarray(0, size);
      messages.push(hasStarted ? rewriteMessage(message, isRefused) : message);
      rest = rest.subarray(size);
      hasStarted = true;
    }
  };
}

function rewriteMessage(message: Buffer, isRefused: (text: string) => boolean): Buffer {
  const type = message[0];
  if (type !== QUERY && type !== PARSE) return message;
  // A Parse message has the name of the statement before its text.
  const start = type === QUERY ? 5 : message.indexOf(0, 5) + 1;
  const end = message.indexOf(0, start);
  if (!isRefused(message.toString('utf8', start, end))) return message;
  const rewritten = Buffer.concat([message.subarray(0, start), Buffer.from(REFUSED), message.subarray(end)]);
  rewritten.writeInt32BE(rewritten.length - 1, 1);
  return rewritten;
}
