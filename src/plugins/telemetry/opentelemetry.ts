// Makes spans with OpenTelemetry's API, which leaves them to the provider that the application has registered. The package
// is loaded only if tracing is enabled.
import type * as OpenTelemetry from '@opentelemetry/api';
import type { DBOSSpan, DBOSTracer, OtelAttributeFormat, SpanAttributes } from '../../run/plugin.js';
import type { DLogger } from '../../kernel/base/log.js';

type API = typeof OpenTelemetry;

/** The name that DBOS gives its tracer, which filters and dashboards may know. */
const TRACER = 'dbos-tracer';

/** The names of attributes in the format `semconv`. Others are the same in both. */
const SEMCONV: ReadonlyMap<string, string> = new Map([
  ['operationUUID', 'dbos.operation.workflow_id'],
  ['operationType', 'dbos.operation.type'],
  ['operationName', 'dbos.operation.name'],
  ['applicationID', 'dbos.application.id'],
  ['applicationVersion', 'dbos.application.version'],
  ['executorID', 'dbos.executor.id'],
  ['queueName', 'dbos.queue.name'],
  ['authenticatedUser', 'dbos.user.name'],
  ['authenticatedRoles', 'dbos.user.roles'],
  ['assumedRole', 'dbos.user.assumed_role'],
]);

export interface TracerOptions {
  readonly format: OtelAttributeFormat;
  readonly logger: DLogger;
  /** Replaces the package, for tests. */
  readonly load?: () => Promise<API>;
}

/** As `import` says it, and `require`, which some tools turn it into. */
const NOT_FOUND: readonly (string | undefined)[] = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'];

/** Undefined, with a warning, if the package is not installed. */
export async function loadTracer({ format, logger, load = loadAPI }: TracerOptions): Promise<DBOSTracer | undefined> {
  try {
    return new OpenTelemetryTracer(await load(), format);
  } catch (error) {
    if (!NOT_FOUND.includes((error as NodeJS.ErrnoException).code)) throw error;
    logger.warn('No spans are made: tracing needs the package @opentelemetry/api. Install it, or disable tracing.');
    return undefined;
  }
}

/** Put together, or bundlers would look for a package that most applications do not have. */
const PACKAGE = ['@opentelemetry', 'api'].join('/');

function loadAPI(): Promise<API> {
  return import(/* webpackIgnore: true */ /* @vite-ignore */ PACKAGE) as Promise<API>;
}

class OpenTelemetryTracer implements DBOSTracer {
  readonly #api: API;
  readonly #format: OtelAttributeFormat;

  constructor(api: API, format: OtelAttributeFormat) {
    this.#api = api;
    this.#format = format;
  }

  startSpan(name: string, attributes: SpanAttributes = {}, parent?: DBOSSpan | null): DBOSSpan {
    const { context, ROOT_CONTEXT, trace } = this.#api;
    const active = parent === null ? ROOT_CONTEXT : context.active();
    const above = parent ? trace.setSpan(active, asSpan(parent)) : active;
    // Asked for each time: the application may register its provider after the launch.
    return asDBOSSpan(trace.getTracer(TRACER).startSpan(name, { attributes: this.#named(attributes) }, above));
  }

  #named(attributes: SpanAttributes): SpanAttributes {
    if (this.#format === 'legacy') return attributes;
    return Object.fromEntries(Object.entries(attributes).map(([name, value]) => [SEMCONV.get(name) ?? name, value]));
  }

  endSpan(span: DBOSSpan): void {
    asSpan(span).end();
  }

  get activeSpan(): DBOSSpan | undefined {
    const span = this.#api.trace.getActiveSpan();
    return span && asDBOSSpan(span);
  }

  within<T>(span: DBOSSpan, body: () => T): T {
    const { context, trace } = this.#api;
    return context.with(trace.setSpan(context.active(), asSpan(span)), body);
  }
}

/** Spans of the SDK also have attributes. Those that no provider records do not, and nothing reads them. */
function asDBOSSpan(span: OpenTelemetry.Span): DBOSSpan {
  return span as unknown as DBOSSpan;
}

function asSpan(span: DBOSSpan): OpenTelemetry.Span {
  return span as unknown as OpenTelemetry.Span;
}
