// Types of the public API that belong to no other file.
import type { DLogger } from '../base/log.js';
import type { WorkflowSerializationFormat } from '../codec/serializer.js';
import type { WorkflowHandle } from '../control/runs/outcome.js';
import type { MethodRegistrationBase } from './associations.js';

/** A plugin's part in the life of the application. */
export interface DBOSLifecycleCallback {
  /** Called at launch. */
  initialize?(): Promise<void>;
  /** Called at shutdown. */
  destroy?(): Promise<void>;
  /** Called at launch and on demand, to log what the plugin serves. */
  logRegisteredEndpoints?(): void;
}

/** Sees every function at launch and may put interceptors before it. */
export interface DBOSMethodMiddlewareInstaller {
  installMiddleware(registration: MethodRegistrationBase): void;
}

export interface ShutdownOptions {
  /** Forgets all registrations as well. */
  readonly deregister?: boolean;
  /** How long to wait for running workflows; not at all unless given. */
  readonly workflowCompletionTimeoutMS?: number;
}

export interface DBOSContextOptions {
  readonly idAssignedForNextWorkflow?: string;
  readonly queueAssignedForWorkflows?: string;
  readonly logger?: DLogger;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: string[];
  readonly assumedRole?: string;
  readonly workflowTimeoutMS?: number | null;
  readonly serializationType?: WorkflowSerializationFormat;
  readonly request?: object;
}

/** A class whose static workflows are started instead of called. */
export type InvokeFunctionsAsync<T> = {
  [K in keyof T as T[K] extends (...args: never[]) => Promise<unknown> ? K : never]: T[K] extends (
    ...args: infer Args
  ) => Promise<infer Return>
    ? (...args: Args) => Promise<WorkflowHandle<Return>>
    : never;
};

/** An instance whose workflows are started instead of called. */
export type InvokeFunctionsAsyncInst<T> = InvokeFunctionsAsync<T>;
