// Public types that belong to no other file.
import type { DurationText } from '../../kernel/base/duration.js';
import type { IncomingHttpHeaders } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import type { DLogger } from '../../kernel/base/log.js';
import type { WorkflowSerializationFormat } from '../../kernel/codec/serializer.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import type { MethodRegistrationBase } from './associations.js';

/** By when a plugin has to have stopped. */
export interface ShutdownDeadline {
  readonly leftMs: number;
}

/** A plugin's hooks into launch and shutdown. */
export interface DBOSLifecycleCallback {
  /** Called at launch. */
  initialize?(): Promise<void>;
  /** Called at shutdown, which does not wait beyond the deadline. */
  destroy?(deadline: ShutdownDeadline): Promise<void>;
  /** Called at launch and on demand. Logs what the plugin serves. */
  logRegisteredEndpoints?(): void;
}

/** Sees every function at launch and may install interceptors. */
export interface DBOSMethodMiddlewareInstaller {
  installMiddleware(registration: MethodRegistrationBase): void;
}

/** What DBOS connects to its Conductor with. Everstep has none: the options are accepted and have no effect. */
export interface DBOSLaunchOptions {
  readonly conductorURL?: string;
  readonly conductorKey?: string;
  readonly conductorExecutorMetadata?: Record<string, unknown>;
  readonly conductorMetadataOnlyMode?: boolean;
}

/** Called with the alerts of DBOS Conductor. */
export type AlertHandler = (name: string, message: string, metadata: Record<string, string>) => Promise<void>;

/** The serializable part of an HTTP request. */
export interface HTTPRequest {
  readonly headers?: IncomingHttpHeaders;
  readonly rawHeaders?: string[];
  readonly params?: unknown;
  readonly body?: unknown;
  readonly rawBody?: string;
  readonly query?: ParsedUrlQuery;
  readonly querystring?: string;
  readonly url?: string;
  readonly method?: string;
  readonly ip?: string;
  readonly requestID?: string;
}

export interface ShutdownOptions {
  /** Also clears all registrations. */
  readonly deregister?: boolean;
  /** How long to wait for running workflows. Default: not at all. */
  readonly workflowCompletionTimeoutMS?: number | DurationText;
}

export interface DBOSContextOptions {
  readonly idAssignedForNextWorkflow?: string;
  readonly queueAssignedForWorkflows?: string;
  readonly logger?: DLogger;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: string[];
  readonly assumedRole?: string;
  readonly workflowTimeoutMS?: number | DurationText | null;
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
