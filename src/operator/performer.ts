// What the verbs of `Management` run on: an engine, which records them in workflow code, or a client, which just runs
// them. The verbs are written once; the performer is what differs.
import type { Operator } from './operator.js';
import type { WorkflowHandle } from './outcome.js';

/** A verb that takes a number in workflow code and is replayed from its record. */
export interface RecordedVerb {
  /** Recorded as `DBOS.<name>`. */
  readonly name: string;
  /** Whether its effects are visible to others. Then everything before it must be durable first. */
  readonly isEffect: boolean;
  /** The format named in the record. Default: that of the configured serializer. */
  readonly format?: 'portable';
}

/** Where an unrecorded verb may be called. */
export type Callers = 'anywhere' | 'outside workflow code' | 'outside workflows';

export interface Performer {
  /** The operator for an unrecorded verb. Throws before launch, and where the verb may not be called. */
  operatorFor(verb: string, callers?: Callers): Operator;
  /** Runs a verb, recorded in workflow code. The token identifies the call there: it is the same after a recovery. */
  perform<R>(verb: RecordedVerb, body: (operator: Operator, token: string | undefined) => Promise<R>): Promise<R>;
  /** A handle of a workflow that exists. */
  handleOf<R>(workflowID: string): WorkflowHandle<R>;
}

/** Reads, and records the result. */
export function look<R>(performer: Performer, name: string, ask: (operator: Operator) => Promise<R>): Promise<R> {
  return performer.perform({ name, isEffect: false }, ask);
}

/** Reads rows and decodes them. Records the rows, which are plain JSON whatever values they hold. */
export async function lookUp<Stored, R>(
  performer: Performer,
  name: string,
  find: (operator: Operator) => Promise<Stored>,
  decode: (operator: Operator, stored: Stored) => Promise<R>,
): Promise<R> {
  const operator = performer.operatorFor(name);
  return decode(operator, await performer.perform({ name, isEffect: false, format: 'portable' }, find));
}

/**
 * Changes something and returns what it changed, which is recorded. DBOS returns nothing from these verbs and records null,
 * as earlier versions did; in a replay of such a record, `nothing` is returned. DBOS hands the output of a record on without
 * looking at it, so it replays ours as well.
 */
export async function changed<R>(
  performer: Performer,
  name: string,
  nothing: R,
  body: (operator: Operator) => Promise<R>,
): Promise<R> {
  return (await performer.perform<R | null>({ name, isEffect: true }, body)) ?? nothing;
}

/** Makes a change without a result, and records that it was made. */
export async function change(
  performer: Performer,
  name: string,
  body: (operator: Operator, token: string | undefined) => Promise<unknown>,
): Promise<void> {
  await performer.perform({ name, isEffect: true }, async (operator, token) => {
    await body(operator, token);
    return null;
  });
}
