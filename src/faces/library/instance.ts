// The internals of a `DBOS` instance, for other modules of the package and for plugins: its functions, its engine, and how
// its verbs are performed.
import type { Callers, RecordedVerb } from '../../operator/performer.js';
import type { ManagementPerformer } from '../../operator/management.js';
import type { Operator } from '../../operator/operator.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import { Engine } from '../../run/engine.js';
import type { Runtime } from '../../run/runtime.js';
import { debounce, type DebounceRequest } from '../../features/queue/debounce.run.js';
import type { AnyConstructor, Registry, UserFunction } from '../../run/registration/registry.js';
import {
  type Context,
  contextOf,
  callersOf,
  currentContext,
  isWorkflowCode,
  refuseInOtherWorkflow,
} from '../../run/ambient.js';
import { shielded } from '../../run/shielded.js';
import { operation, readStored } from '../../run/operation.js';
import { DBOSExecutorNotInitializedError, DBOSInvalidWorkflowTransitionError } from '../../kernel/errors/errors.js';
import type { QueueRecord } from '../../features/queue/queue.js';
import type { LocalEngine } from '../http/source.js';
import { Associations } from './associations.js';
import { Functions, type Host } from './functions.js';
import { type Identity, identityOf, Lifecycle, type TestSettings } from './lifecycle.js';
import { queueOf, type WorkflowQueue } from './workflow-queue.js';

/** A debounced call. */
type DebounceCall = Pick<DebounceRequest, 'key' | 'periodMs' | 'timeoutMs' | 'applicationName' | 'params' | 'args'>;

export class Instance implements Host, ManagementPerformer<WorkflowQueue> {
  readonly registry: Registry;
  readonly functions: Functions;
  readonly associations: Associations;
  readonly lifecycle: Lifecycle;
  readonly #names = new WeakMap<object, string>();

  constructor(registry: Registry, testSettings: TestSettings) {
    this.registry = registry;
    this.functions = new Functions(this, (object) => this.#names.get(object as object));
    this.associations = new Associations(registry, this.functions);
    this.lifecycle = new Lifecycle({
      registry,
      testSettings,
      viewOf: (registration) => this.associations.viewOf(registration),
    });
  }

  /** The source of the admin interface. */
  get operator(): Runtime {
    return this.lifecycle.operator;
  }

  get localEngine(): LocalEngine {
    return this.lifecycle.localEngine;
  }

  /** What this instance has set for the running code. Throws in a workflow of another instance. */
  contextFor(called: string): Context | undefined {
    refuseInOtherWorkflow(this.registry, called);
    return this.context;
  }

  get context(): Context | undefined {
    return contextOf(this.registry);
  }

  /** The launched engine; inside a workflow, the one that runs it. */
  engineFor(reason: string): Engine {
    const runtime = this.contextFor(reason)?.run?.runtime;
    const engine = runtime ? Engine.of(runtime) : this.lifecycle.engine;
    if (engine) return engine;
    if (this.registry.isShuttingDown) throw DBOSExecutorNotInitializedError.duringShutdown(reason);
    throw new DBOSExecutorNotInitializedError(
      this.lifecycle.isLaunching
        ? `\`DBOS.launch()\` has not finished. Await it before running ${reason}.`
        : `\`DBOS.launch()\` must be called before running ${reason}.`,
    );
  }

  /** Which code this process runs, and its own ID: also before a launch and after a shutdown. */
  identityFor(called: string): Identity {
    const runtime = this.contextFor(called)?.run?.runtime;
    return runtime ? identityOf(runtime) : this.lifecycle.identity;
  }

  runtimeFor(reason: string): Runtime {
    return this.engineFor(reason).runtime;
  }

  // ── Verbs ──────────────────────────────────────────────────────────────────────────────────────────────────────

  operatorFor(verb: string, callers: Callers = 'anywhere'): Runtime {
    const context = this.contextFor(verb);
    if (callers === 'outside workflows' && context?.run) {
      throw new DBOSInvalidWorkflowTransitionError(
        `DBOS.${verb} cannot be called from a workflow. Call it from outside.`,
      );
    }
    if (callers === 'outside workflow code' && isWorkflowCode(context)) {
      throw new DBOSInvalidWorkflowTransitionError(`Invalid call to \`${verb}\` in workflow code. Call it in a step.`);
    }
    return callersOf(this.engineFor(verb).runtime);
  }

  handleOf<R>(workflowID: string): WorkflowHandle<R> {
    return this.engineFor('handles').handleOfExisting<R>(workflowID);
  }

  perform<R>(
    { name, ...options }: RecordedVerb,
    body: (runtime: Runtime, token: string | undefined) => Promise<R>,
  ): Promise<R> {
    const { runtime } = this.engineFor(name);
    // Before the operation takes its number, from which the token is derived.
    const token = nextToken();
    const act = (): Promise<R> => body(callersOf(runtime), token);
    return shielded(operation({ ...options, name: `DBOS.${name}` }, options.isEffect ? act : () => readStored(act)));
  }

  queueOf(operator: Operator, record: QueueRecord): WorkflowQueue {
    return queueOf(operator, record);
  }

  // ── For other classes of the facade ────────────────────────────────────────────────────────────────────────────

  registerInstance(instance: object, name: string): void {
    this.registry.addInstance(instance, this.registry.classNameOf(instance.constructor as AnyConstructor), name);
    this.#names.set(instance, name);
    if (this.lifecycle.engine) {
      this.lifecycle.logger.warn(
        `ConfiguredInstance "${name}" was created after DBOS.launch(); recovery did not see it.`,
      );
    }
  }

  registerMemoryQueue(record: QueueRecord): void {
    this.registry.addQueue(record);
    this.lifecycle.engine?.queues.refresh();
  }

  debounceWorkflow<R>(
    target: UserFunction,
    { applicationName, params, args, ...limits }: DebounceCall,
  ): Promise<WorkflowHandle<R>> {
    const workflow = this.registry.workflowOf(target, target.name);
    const engine = this.engineFor('workflows');
    const request = this.functions.requestFor(workflow, undefined, args, params);
    return shielded(debounce<R>(engine, { ...request, ...limits, applicationName }));
  }
}

/** Identifies the next call in workflow code; the same after a recovery. */
function nextToken(): string | undefined {
  const context = currentContext();
  return isWorkflowCode(context) ? `${context.run.childPrefix}-${context.run.upcomingStepID}` : undefined;
}
