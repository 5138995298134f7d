// What published plugins load besides the library and we do not install: tracing, which makes no spans here, and the
// metadata of decorators, of which esbuild emits none.
export class W3CTraceContextPropagator {
  extract(context: unknown): unknown {
    return context;
  }
  inject(): void {}
}
export const trace = {
  getSpanContext: (): undefined => undefined,
  setSpan: (context: unknown): unknown => context,
  setSpanContext: (context: unknown): unknown => context,
};
export const context = {
  active: (): object => ({}),
  with: (_context: unknown, body: () => unknown): unknown => body(),
};
export const ROOT_CONTEXT = {};
export const defaultTextMapGetter = {};
export const SpanStatusCode = { UNSET: 0, OK: 1, ERROR: 2 };
