// Ports for servers that are given one. Not of the range from which systems take the ports of outgoing connections: one of those
// could have it before the server, or while the server is restarted, even a connection to that very port.
import { once } from 'node:events';
import { createServer } from 'node:net';

const FIRST = 12_000;
const LAST = 30_000;

/** @returns {Promise<number>} */
export async function freePort() {
  for (;;) {
    const probe = createServer();
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST));
    try {
      probe.listen(port, '127.0.0.1');
      await once(probe, 'listening');
    } catch {
      // Another program listens there.
      continue;
    }
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
