// Requests that a fuzzer would send, from a seed: the same ones in every run.
import { connect } from 'node:net';

/** Texts that have broken parsers, paths, databases and terminals. */
export const HOSTILE_TEXTS: readonly string[] = [
  '',
  ' ',
  '.',
  '..',
  '%00',
  '%',
  '%2e%2e',
  '%2F',
  '%5c',
  '%ff',
  '%F0%9F%98%80',
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  'NaN',
  '-1',
  '1e309',
  '9223372036854775808',
  "'%20OR%201=1--",
  '$1',
  '{}',
  '[]',
  '%0d%0ax:y',
  'x'.repeat(2000),
  '%E2%80%AE',
  ':80',
  '[',
  '*',
  ';',
  '~',
];

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

export const HOSTILE_BODIES: readonly string[] = [
  '',
  '{',
  'null',
  '[]',
  '0',
  '1e400',
  '-0',
  '"text"',
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{"isAdmin":true}}}',
  '{"a":{"__proto__":1}}',
  '{"":"","\\u0000":"\\u0000"}',
  '"\\ud800"',
  '"\u0000"',
  deep(200),
  deep(50_000),
  `{"a":${'{"a":'.repeat(3000)}1${'}'.repeat(3001)}`,
  JSON.stringify('x'.repeat(100_000)),
  JSON.stringify(Array.from({ length: 20_000 }, () => null)),
  '\ufeff{}',
  '{"a":1}{"b":2}',
  "{'a':1}",
  '{"workflowID":{"$gt":""},"limit":"all","status":[["x"]],"args":{"length":1e9}}',
];

/** Numbers from 0 up to 1, the same for the same seed. */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export interface HostileRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface RequestSource {
  readonly seed: number;
  readonly count: number;
  readonly methods: readonly string[];
  /** Paths with parameters in braces or after a colon. */
  readonly paths: readonly string[];
  readonly headers: (pick: <T>(from: readonly T[]) => T) => Readonly<Record<string, string>>;
}

/** Requests with hostile parameters, paths, queries, headers and bodies. */
export function* hostileRequests({ seed, count, methods, paths, headers }: RequestSource): Generator<HostileRequest> {
  const next = random(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T;
  const rawPaths = ['//', '/\\', '/..', '*', 'http://', '//[', '/?', '/%', '/a/../b', '/#'];
  for (let index = 0; index < count; index += 1) {
    const path = next() < 0.1 ? pick(rawPaths) : pick(paths).replaceAll(/\{\w+\}|:\w+/g, () => pick(HOSTILE_TEXTS));
    const query = next() < 0.3 ? `?${pick(HOSTILE_TEXTS)}=${pick(HOSTILE_TEXTS)}` : '';
    const target = `${path}${query}`.replaceAll(' ', '%20') || '/';
    yield { method: pick(methods), target, headers: headers(pick), body: pick(HOSTILE_BODIES) };
  }
}

/** Sends the bytes as they are, and resolves to the status. Rejects if there is no answer in time. */
export function sendRaw(
  url: string,
  { method, target, headers, body }: HostileRequest,
  timeoutMs = 20_000,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const bytes = Buffer.from(method === 'GET' ? '' : body);
    const lines = Object.entries({ host: 'localhost', ...headers, 'content-length': String(bytes.length) });
    const head = [
      `${method} ${target} HTTP/1.1`,
      'connection: close',
      ...lines.map(([name, value]) => `${name}: ${value}`),
    ];
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      socket.write(bytes);
    });
    let text = '';
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`No answer to ${method} ${target}.`)));
    socket.on('data', (chunk) => (text += chunk.toString('latin1')));
    // The server may answer and close before it has read the whole body.
    socket.on('error', (error) => (text === '' ? reject(error) : undefined));
    socket.on('close', () => resolve(Number(text.split(' ')[1])));
  });
}
