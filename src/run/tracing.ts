// Spans of workflows, steps and transactions. What makes them is in the room `telemetry`; without it nothing is traced.
//
// A workflow has a span for each of its runs, from its start in this process until it ends or leaves. A step has one below
// that, also if it is replayed: then it is marked `cached`.
export type SpanAttribute =
  | string
  | number
  | boolean
  | (string | null | undefined)[]
  | (number | null | undefined)[]
  | (boolean | null | undefined)[];

export type SpanAttributes = Record<string, SpanAttribute | undefined>;

/** A span of OpenTelemetry, as far as DBOS programs use it. */
export interface DBOSSpan {
  readonly attributes: SpanAttributes;
  setStatus(status: { code: 0 | 1 | 2; message?: string }): DBOSSpan;
  setAttribute(key: string, attribute: SpanAttribute): DBOSSpan;
  addEvent(name: string, attributes?: SpanAttributes, timestamp?: number): DBOSSpan;
}

/** Makes spans. */
export interface DBOSTracer {
  /** Below the parent. Default: below the active span, if there is one. Null: below none. */
  startSpan(name: string, attributes?: SpanAttributes, parent?: DBOSSpan | null): DBOSSpan;
  endSpan(span: DBOSSpan): void;
  /** The span that code is in, of whichever library. */
  readonly activeSpan: DBOSSpan | undefined;
  /** Runs the body with the span as the active one, so that spans of other libraries are below it. */
  within<T>(span: DBOSSpan, body: () => T): T;
}

/** The part of a run that its spans show. */
interface TracedRun {
  readonly workflowID: string;
  readonly registration: { readonly name: string };
  readonly queueName: string | null;
  /** Undefined if the caller in this process has started it. */
  readonly history: object | undefined;
  readonly runtime: {
    readonly applicationVersion: string;
    readonly config: { readonly applicationID: string; readonly executorID: string };
  };
}

/** The part of a context that spans show. */
interface TracedContext {
  readonly span?: DBOSSpan;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: readonly string[];
  readonly assumedRole?: string;
}

/** How a run ended, if it did so here. */
type TracedOutcome = { readonly kind: 'success' | 'elsewhere' } | { readonly kind: 'error'; readonly error: unknown };

const OK = { code: 1 } as const;

function failed(error: unknown) {
  return { code: 2, message: error instanceof Error ? error.message : String(error) } as const;
}

/** The spans of one run in this process. */
export class RunSpans {
  /** That of the workflow. */
  readonly own: DBOSSpan;
  readonly #tracer: DBOSTracer;
  /** A run that leaves never continues the code that would end them. */
  readonly #open = new Set<DBOSSpan>();

  constructor(tracer: DBOSTracer, { run, context }: { readonly run: TracedRun; readonly context: TracedContext }) {
    const { name } = run.registration;
    this.#tracer = tracer;
    const attributes = { status: 'PENDING', ...(run.queueName !== null && { queueName: run.queueName }) };
    // A claimed workflow continues in whatever context the claim was made, which has nothing to do with it.
    const parent = run.history ? null : context.span;
    this.own = this.#begin({ ...attributesOf(context, run, 'workflow', name), ...attributes }, parent);
  }

  #begin(attributes: SpanAttributes & { readonly operationName: string }, parent?: DBOSSpan | null): DBOSSpan {
    const span = this.#tracer.startSpan(attributes.operationName, attributes, parent);
    this.#open.add(span);
    return span;
  }

  #end(span: DBOSSpan): void {
    if (this.#open.delete(span)) this.#tracer.endSpan(span);
  }

  /** Runs the workflow's code with its span as the active one. */
  within<T>(body: () => T): T {
    return this.#tracer.within(this.own, body);
  }

  /** The run has ended with this outcome. */
  conclude(outcome: TracedOutcome): void {
    if (outcome.kind === 'success') this.own.setStatus(OK).setAttribute('status', 'SUCCESS');
    if (outcome.kind === 'error') this.own.setStatus(failed(outcome.error)).setAttribute('status', 'ERROR');
  }

  /** The run has ended here, or has left the process. */
  endAll(): void {
    for (const span of [...this.#open].reverse()) this.#end(span);
  }

  /** Performs an operation in a span of its own. */
  async operation<C extends TracedContext & { readonly run: TracedRun }, R>(
    context: C,
    traced: TracedOperation<C, R>,
  ): Promise<R> {
    const { type, name, attributes, perform } = traced;
    const span = this.#begin({ ...attributesOf(context, context.run, type, name), ...attributes }, context.span);
    let isCached = true;
    const begin: Begin = (body) => () => {
      isCached = false;
      return this.#tracer.within(span, body);
    };
    try {
      const result = await perform({ ...context, span }, begin);
      span.setStatus(OK);
      return result;
    } catch (error) {
      span.setStatus(failed(error));
      throw error;
    } finally {
      if (isCached) span.setAttribute('cached', true);
      this.#end(span);
    }
  }
}

/** Wraps the body of an operation. A body that is never called was replayed. */
type Begin = <T>(body: () => T) => () => T;

interface TracedOperation<C, R> {
  readonly type: 'step' | 'transaction';
  readonly name: string;
  readonly attributes?: SpanAttributes;
  readonly perform: (context: C, begin: Begin) => Promise<R>;
}

function attributesOf(context: TracedContext, run: TracedRun, operationType: string, operationName: string) {
  const { config, applicationVersion } = run.runtime;
  return {
    applicationID: config.applicationID,
    applicationVersion,
    executorID: config.executorID,
    operationUUID: run.workflowID,
    operationType,
    operationName,
    authenticatedUser: context.authenticatedUser ?? '',
    assumedRole: context.assumedRole ?? '',
    authenticatedRoles: [...(context.authenticatedRoles ?? [])],
  };
}
