// Answers, each with the headers that keep browsers from guessing, storing and embedding.
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

type ExtraHeaders = Readonly<Record<string, string>>;

export function jsonAnswer(body: unknown, status = 200, headers: ExtraHeaders = {}): Response {
  return answer(JSON.stringify(body), status, { 'content-type': 'application/json; charset=utf-8', ...headers });
}

export function textAnswer(body: string, status = 200, headers: ExtraHeaders = {}): Response {
  return answer(body, status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
}

export function emptyAnswer(status = 204, headers: ExtraHeaders = {}): Response {
  return answer(null, status, headers);
}

export function streamAnswer(body: ReadableStream<Uint8Array>, contentType: string): Response {
  return answer(body, 200, { 'content-type': contentType });
}

function answer(body: string | ReadableStream<Uint8Array> | null, status: number, headers: ExtraHeaders): Response {
  return new Response(body, { status, headers: { ...HEADERS, ...headers } });
}

/** The same answer without its body. */
export async function withoutBody(response: Response): Promise<Response> {
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}
