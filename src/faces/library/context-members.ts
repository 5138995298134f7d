// The members of `DBOS` that say where code runs: in which process, workflow and step, and for whom.
import { internals } from '../../kernel/base/internals.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { WorkflowSerializationFormat } from '../../kernel/codec/serializer.js';
import { currentContext, isWorkflowCode, type StepStatus } from '../../run/ambient.js';
import { DBOSInvalidWorkflowTransitionError } from '../../kernel/errors/errors.js';
import { Operations } from './operations.js';
import type { DBOSSpan, DBOSTracer } from '../../run/tracing.js';
import type { HTTPRequest } from './types.js';

export abstract class ContextMembers extends Operations {
  get logger(): DLogger {
    return this[internals].lifecycle.logger;
  }

  /** Before a launch, the configured one; empty if none is. */
  get applicationVersion(): string {
    return this[internals].identityFor('applicationVersion').applicationVersion;
  }

  get executorID(): string {
    return this[internals].identityFor('executorID').executorID;
  }

  get workflowID(): string | undefined {
    return this[internals].context?.run?.workflowID;
  }

  get stepID(): number | undefined {
    const context = this[internals].context;
    return context?.step?.stepID ?? context?.transactionID;
  }

  get stepStatus(): StepStatus | undefined {
    return this[internals].context?.step;
  }

  get authenticatedUser(): string {
    return this[internals].context?.authenticatedUser ?? '';
  }

  get authenticatedRoles(): string[] {
    return [...(this[internals].context?.authenticatedRoles ?? [])];
  }

  get assumedRole(): string {
    return this[internals].context?.assumedRole ?? '';
  }

  /** The object that `runWithContext` was given as `request`, such as by a plugin that serves HTTP. */
  requestObject(): object | undefined {
    return this[internals].context?.request;
  }

  /** The same, as an HTTP request. */
  getRequest(): HTTPRequest | undefined {
    return this.requestObject();
  }

  /** The same; throws where there is none. */
  get request(): HTTPRequest {
    const request = this.getRequest();
    if (request) return request;
    throw new DBOSInvalidWorkflowTransitionError('`DBOS.request` accessed from outside of HTTP requests');
  }

  /** The format in which values are stored here unless another is asked for; undefined is the default format. */
  get defaultSerializationType(): WorkflowSerializationFormat | undefined {
    const context = this[internals].context;
    return context?.run?.isPortable ? 'portable' : context?.serialization;
  }

  /** The span of the running workflow, step or transaction, or else the active one. Undefined unless tracing is enabled. */
  get span(): DBOSSpan | undefined {
    return currentContext()?.span ?? this.tracer?.activeSpan;
  }

  /** Makes spans. Undefined unless tracing is enabled. */
  get tracer(): DBOSTracer | undefined {
    return this[internals].lifecycle.tracer;
  }

  isInTransaction(): boolean {
    return this[internals].context?.transactionID !== undefined;
  }

  isInStep(): boolean {
    return this[internals].context?.step !== undefined;
  }

  isWithinWorkflow(): boolean {
    return this[internals].context?.run !== undefined;
  }

  isInWorkflow(): boolean {
    return isWorkflowCode(this[internals].context);
  }
}
