// Responses, with headers that keep browsers from sniffing, caching and embedding.
const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

type ExtraHeaders = Readonly<Record<string, string>>;

export function jsonResponse(body: unknown, status = 200, headers: ExtraHeaders = {}): Response {
  return respond(JSON.stringify(body), status, { 'content-type': 'application/json; charset=utf-8', ...headers });
}

export function textResponse(body: string, status = 200, headers: ExtraHeaders = {}): Response {
  return respond(body, status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
}

export function emptyResponse(status = 204, headers: ExtraHeaders = {}): Response {
  return respond(null, status, headers);
}

export function streamResponse(body: ReadableStream<Uint8Array>, contentType: string): Response {
  return respond(body, 200, { 'content-type': contentType });
}

export function respond(
  body: string | ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null,
  status: number,
  headers: ExtraHeaders,
): Response {
  return new Response(body, { status, headers: { ...HEADERS, ...headers } });
}

/** The same response without its body. */
export async function withoutBody(response: Response): Promise<Response> {
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}
