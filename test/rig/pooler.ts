// A proxy in front of Postgres that treats startup options as connection poolers do: it refuses them, or drops them silently.
import { connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';

/** The given URL, through the proxy; it is closed when the test ends. */
export async function startPooler(targetURL: string, treatment: 'refuses' | 'ignores'): Promise<string> {
  const target = new URL(targetURL);
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const socket of [client, upstream]) {
      socket.on('error', () => {});
      socket.on('close', () => {
        client.destroy();
        upstream.destroy();
      });
    }
    client.once('data', (startup) => {
      const parameters = parametersOf(startup);
      if (treatment === 'refuses' && parameters.has('options')) return client.end(refusal());
      parameters.delete('options');
      upstream.write(startupPacket(parameters));
      client.pipe(upstream);
      upstream.pipe(client);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = new URL(targetURL);
  url.port = String((server.address() as { port: number }).port);
  return url.href;
}

/** Length and protocol version, then names and values that end with a NUL each. */
export function parametersOf(packet: Buffer): Map<string, string> {
  const words = packet.subarray(8).toString('utf8').split('\0');
  const parameters = new Map<string, string>();
  for (let index = 0; words[index]; index += 2) parameters.set(words[index] ?? '', words[index + 1] ?? '');
  return parameters;
}

const PROTOCOL = 196_608;

export function startupPacket(parameters: ReadonlyMap<string, string>): Buffer {
  const text = [...parameters].flatMap(([name, value]) => [`${name}\0`, `${value}\0`]).join('');
  const body = Buffer.from(`${text}\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(body.length + 8, 0);
  head.writeInt32BE(PROTOCOL, 4);
  return Buffer.concat([head, body]);
}

/** As PgBouncer words it. */
function refusal(): Buffer {
  return fatal('08P01', 'unsupported startup parameter: options');
}

/** An error that ends the session. */
export function fatal(code: string, message: string): Buffer {
  const body = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}
