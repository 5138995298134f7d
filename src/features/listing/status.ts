// Workflow and step rows as the public API returns them.
import { inspect } from 'node:util';
import { excerptOf, type ExcerptLimits } from '../../kernel/base/excerpt.js';
import type { Codec } from '../../kernel/codec/codec.js';
import type { StepRecord, WorkflowRecord } from '../../kernel/workflow/records.js';
import type { WorkflowStatusString } from '../../kernel/workflow/status.js';
import type { ExplainedRecord } from '../history/cancellations.js';
import type { WaitingFor } from '../parking/waiting-for.js';

export interface WorkflowStatus {
  readonly workflowID: string;
  readonly status: WorkflowStatusString;
  readonly workflowName: string;
  readonly workflowClassName: string;
  readonly workflowConfigName: string;
  readonly queueName?: string;
  readonly authenticatedUser?: string;
  readonly assumedRole?: string;
  readonly authenticatedRoles?: string[];
  readonly input?: unknown[];
  readonly output?: unknown;
  readonly error?: unknown;
  readonly executorId?: string;
  readonly applicationVersion?: string;
  readonly applicationID?: string;
  readonly applicationName?: string;
  readonly createdAt: number;
  readonly updatedAt?: number;
  readonly timeoutMS?: number;
  readonly deadlineEpochMS?: number;
  readonly deduplicationID?: string;
  readonly priority: number;
  readonly queuePartitionKey?: string;
  readonly dequeuedAt?: number;
  readonly delayUntilEpochMS?: number;
  readonly completedAt?: number;
  readonly forkedFrom?: string;
  readonly wasForkedFrom: boolean;
  readonly parentWorkflowID?: string;
  readonly attributes?: Record<string, unknown>;
  readonly scheduleName?: string;
  readonly recoveryAttempts?: number;
  /** What it waits for, if it is pending and parked, out of memory. Up to 20 things; any of them wakes it. */
  readonly waitingFor?: WaitingFor[];
  /** Why it was cancelled: what the caller said, or 'timeout'. */
  readonly cancelReason?: string;
  /** Who cancelled it, if the caller said so. */
  readonly cancelledBy?: string;
}

/** A step, as the public API returns it. */
export interface StepInfo {
  readonly functionID: number;
  readonly name: string;
  readonly output: unknown;
  readonly error: Error | null;
  readonly childWorkflowID: string | null;
  readonly startedAtEpochMs?: number;
  readonly completedAtEpochMs?: number;
}

/** Decodes the row. An undecodable value stays text, so that one bad value does not hide the rest. */
export async function toStatus(codec: Codec, record: ExplainedRecord): Promise<WorkflowStatus> {
  const present = <T>(value: T | null): T | undefined => value ?? undefined;
  return {
    workflowID: record.workflowID,
    status: record.status,
    workflowName: record.name,
    workflowClassName: record.className ?? '',
    workflowConfigName: record.configName ?? '',
    queueName: present(record.queueName),
    authenticatedUser: present(record.authenticatedUser),
    assumedRole: present(record.assumedRole),
    authenticatedRoles: parsed<string[]>(record.authenticatedRoles),
    input: record.inputs === null ? undefined : await readInputs(codec, record),
    output:
      record.output === null
        ? undefined
        : await readable(record.output, () => codec.decodeValue(record.output, record.serialization)),
    error: record.error === null ? undefined : await readError(codec, record.error, record.serialization),
    executorId: present(record.executorID),
    applicationVersion: present(record.applicationVersion),
    applicationID: present(record.applicationID),
    applicationName: present(record.applicationName),
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
    timeoutMS: present(record.timeoutMs),
    deadlineEpochMS: present(record.deadlineAt),
    deduplicationID: present(record.deduplicationID),
    priority: record.priority,
    queuePartitionKey: present(record.queuePartitionKey),
    dequeuedAt: present(record.startedAt),
    delayUntilEpochMS: present(record.delayUntil),
    completedAt: present(record.completedAt),
    forkedFrom: present(record.forkedFrom),
    wasForkedFrom: record.wasForkedFrom,
    parentWorkflowID: present(record.parentWorkflowID),
    attributes: parsed<Record<string, unknown>>(record.attributes),
    scheduleName: present(record.scheduleName),
    recoveryAttempts: record.recoveryAttempts,
    ...(record.waitingFor !== undefined && { waitingFor: record.waitingFor }),
    ...(record.cancelReason !== undefined && { cancelReason: record.cancelReason }),
    ...(record.cancelledBy !== undefined && { cancelledBy: record.cancelledBy }),
  };
}

export async function toStepInfo(codec: Codec, record: StepRecord): Promise<StepInfo> {
  return {
    functionID: record.stepID,
    name: record.name,
    output:
      record.output === null
        ? null
        : await readable(record.output, () => codec.decodeValue(record.output, record.serialization)),
    error: record.error === null ? null : await readError(codec, record.error, record.serialization),
    childWorkflowID: record.childWorkflowID,
    startedAtEpochMs: record.startedAt ?? undefined,
    completedAtEpochMs: record.completedAt ?? undefined,
  };
}

/** Other libraries may have stored invalid JSON; it stays text, like any undecodable value. */
function parsed<T>(text: string | null): T | undefined {
  if (text === null) return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    return text as T;
  }
}

async function readInputs(codec: Codec, record: WorkflowRecord): Promise<unknown[]> {
  const text = record.inputs ?? '';
  const inputs = await readable(text, async () => {
    const { args, namedArgs } = await codec.decodeInputs(text, record.serialization);
    return namedArgs === undefined || Object.keys(namedArgs).length === 0 ? args : [...args, namedArgs];
  });
  return inputs as unknown[];
}

/** The value, or the stored text if it cannot be decoded. */
export async function readable(text: string, read: () => unknown): Promise<unknown> {
  try {
    return await read();
  } catch {
    // Show a broken value as stored.
    return text;
  }
}

async function readError(codec: Codec, text: string, serialization: string | null): Promise<Error> {
  const error = await readable(text, () => codec.decodeError(text, serialization));
  return error instanceof Error ? error : new Error(typeof error === 'string' ? error : messageOf(error));
}

const MESSAGE_LIMITS: ExcerptLimits = { nodes: 1000, characters: 10_000, depth: 20 };

/** A workflow may throw anything: a big integer, a cyclic object, a very large one. */
function messageOf(thrown: unknown): string {
  const { value } = excerptOf(thrown, MESSAGE_LIMITS);
  try {
    return JSON.stringify(value) ?? inspect(value);
  } catch {
    return inspect(value, { depth: null });
  }
}
