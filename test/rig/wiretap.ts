// A TCP proxy in front of Postgres that notes the requests of its clients, by the types of their messages.
import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Wiretap {
  /** The given URL, through the proxy. */
  readonly url: string;
  /**
   * Returns the requests since the last call, and forgets them. Each is a simple query, or messages up to a Sync: `Q`, `PBDES`.
   * The server answers each by itself, so their number is that of the round trips.
   */
  take(): string[];
}

const UNTIL_ANSWERED = new Set(['Q', 'S']);
/** The type of a message, which the first one lacks. */
const TYPE_BYTES = 1;
const LENGTH_BYTES = 4;

/** Starts a proxy in front of the server of `targetURL`; it is closed when the test ends. */
export async function startWiretap(targetURL: string): Promise<Wiretap> {
  const target = new URL(targetURL);
  const sockets = new Set<Socket>();
  let requests: string[] = [];
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
        sockets.delete(socket);
      });
    }
    const note = notingOf((request) => requests.push(request));
    client.on('data', (chunk) => {
      note(chunk);
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => client.write(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = new URL(targetURL);
  url.port = String((server.address() as { port: number }).port);
  return {
    url: url.toString(),
    take() {
      const taken = requests;
      requests = [];
      return taken;
    },
  };
}

/** Takes the bytes of one connection, in pieces of any size. */
function notingOf(onRequest: (request: string) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let isStarted = false;
  let types = '';
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const typeBytes = isStarted ? TYPE_BYTES : 0;
      if (rest.length < typeBytes + LENGTH_BYTES) return;
      const end = typeBytes + rest.readInt32BE(typeBytes);
      if (rest.length < end) return;
      if (isStarted) types += String.fromCharCode(rest[0] ?? 0);
      if (UNTIL_ANSWERED.has(types.at(-1) ?? '')) {
        onRequest(types);
        types = '';
      }
      isStarted = true;
      rest = rest.subarray(end);
    }
  };
}
