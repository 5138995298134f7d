// What must hold of the tables and the journal, whatever happened in between.
import { expect } from 'vitest';
import { Codec } from '../../src/kernel/codec/codec.js';
import type { StepRecord, WorkflowRecord } from '../../src/kernel/workflow/records.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { stepColumns, workflowColumns } from '../../src/database/columns.js';
import type { Database } from '../../src/database/database.js';
import { type Line, linesOf } from './journal.js';
import { TOKENS, type WorkflowName } from './workflows.js';

/** The tables at one moment, with the values in them decoded. */
export interface Tables {
  readonly workflows: ReadonlyMap<string, WorkflowRecord & { readonly value: unknown }>;
  readonly steps: ReadonlyMap<string, StepRecord & { readonly value: unknown }>;
}

const codec = new Codec();

export async function readTables(database: Database): Promise<Tables> {
  const workflowRows = await database.read(sql`
    SELECT ${workflowColumns.select('w')}
    FROM ${table('workflow_status')} AS w`);
  const stepRows = await database.read(sql`
    SELECT ${stepColumns.select('o')}
    FROM ${table('operation_outputs')} AS o
    ORDER BY o.workflow_uuid, o.function_id`);
  const workflows: (WorkflowRecord & { value: unknown })[] = [];
  for (const row of workflowRows) {
    const record = workflowColumns.toRecord(row);
    workflows.push({ ...record, value: await codec.decodeValue(record.output, record.serialization) });
  }
  const steps: (StepRecord & { value: unknown })[] = [];
  for (const row of stepRows) {
    const record = stepColumns.toRecord(row);
    steps.push({ ...record, value: await codec.decodeValue(record.output, record.serialization) });
  }
  return {
    workflows: new Map(workflows.map((workflow) => [workflow.workflowID, workflow])),
    steps: new Map(steps.map((step) => [stepKey(step), step])),
  };
}

export async function countByStatus(database: Database): Promise<Map<string, number>> {
  const rows = await database.read(sql`
    SELECT w.status, COUNT(*) AS number
    FROM ${table('workflow_status')} AS w
    GROUP BY w.status`);
  return new Map(rows.map((row) => [row['status'] as string, row['number'] as number]));
}

export function stepKey({ workflowID, stepID }: { readonly workflowID: string; readonly stepID: number }): string {
  return `${workflowID} ${stepID}`;
}

/**
 * Nothing has left a run before what it rests on was durable: holds of the tables at the moment of a kill, or later, and
 * the journal up to then.
 */
export function expectGivenIsDurable(tables: Tables, lines: readonly Line[]): void {
  for (const { workflowID, stepID, name } of linesOf(lines, 'step')) {
    expect(tables.workflows.has(workflowID), `the row of "${workflowID}", whose step "${name}" has begun`).toBe(true);
    // "right" is started together with "left", the number before; all other steps come one after the other.
    const rests = Array.from({ length: name === 'right' ? stepID - 1 : stepID }, (_, index) => index);
    for (const before of rests) {
      // Its number is reserved, but it is only recorded if there was something to wait for.
      if (isTimer(tables, workflowID, before)) continue;
      const key = stepKey({ workflowID, stepID: before });
      expect(tables.steps.has(key), `checkpoint ${key}, after which step "${name}" has begun`).toBe(true);
    }
  }
  for (const { workflowID } of linesOf(lines, 'handle')) {
    expect(tables.workflows.has(workflowID), `the row of "${workflowID}", whose handle was given out`).toBe(true);
  }
  for (const { workflowID, value } of linesOf(lines, 'result')) {
    expect(tables.workflows.get(workflowID), `the row of "${workflowID}", whose result was given out`).toMatchObject({
      status: 'SUCCESS',
      value,
    });
  }
}

/** True for the number of the time limit of a receive, or of reading an event. */
function isTimer({ steps }: Tables, workflowID: string, stepID: number): boolean {
  const before = steps.get(stepKey({ workflowID, stepID: stepID - 1 }));
  return before?.name === 'DBOS.recv' || before?.name === 'DBOS.getEvent';
}

/** What was durable at the moment of a kill is untouched afterwards, and no recorded step has run again. */
export function expectKept(then: Tables, now: Tables, linesSince: readonly Line[]): void {
  for (const [key, step] of then.steps) expect(now.steps.get(key), `checkpoint ${key}`).toEqual(step);
  for (const line of linesOf(linesSince, 'step')) {
    expect(then.steps.has(stepKey(line)), `step ${stepKey(line)} ran again after its checkpoint was durable`).toBe(
      false,
    );
  }
  for (const [workflowID, workflow] of then.workflows) {
    const { wasForkedFrom = false } = now.workflows.get(workflowID) ?? {};
    if (workflow.status !== 'SUCCESS') continue;
    expect(now.workflows.get(workflowID), workflowID).toEqual({ ...workflow, wasForkedFrom });
  }
}

/**
 * All workflows have ended well: each with the value that its checkpoints add up to, each checkpoint with the value of
 * the last execution of its body, and everyone who was given a result was given this one.
 */
export function expectAllDone(tables: Tables, lines: readonly Line[]): void {
  expectAllEnded(tables, lines);
  expectLastExecutionRecorded(tables, lines);
  for (const { at, until, workflowID } of wakings(tables, lines)) {
    expect(at, `when "${workflowID}" woke`).toBeGreaterThanOrEqual(until);
  }
}

/** The same, but processes that have lost a workflow may have begun steps whose outcome was refused. */
export function expectAllEnded(tables: Tables, lines: readonly Line[]): void {
  expectGivenIsDurable(tables, lines);
  for (const [workflowID, workflow] of tables.workflows) {
    expect(workflow, `the end of "${workflowID}"`).toMatchObject({
      status: 'SUCCESS',
      error: null,
      owner: expect.any(String) as string,
    });
    const tokens = (workflow.value as string[]).filter((token) => !token.startsWith('pid:'));
    expect(tokens, `the outcome of "${workflowID}"`).toEqual(expectedTokens(tables, workflowID));
    expect(tokens, `the outcome of "${workflowID}"`).toHaveLength(TOKENS[workflow.name as WorkflowName]);
    if (workflow.parentWorkflowID !== null) {
      const started = [...tables.steps.values()].filter(
        (step) => step.childWorkflowID === workflowID && !step.name.startsWith('DBOS.'),
      );
      expect(started, `the records of having started "${workflowID}"`).toHaveLength(1);
    }
  }
  expectSlept(tables, lines);
}

/** A body that runs after its checkpoint was durable would leave a later line than the one that is recorded. */
function expectLastExecutionRecorded(tables: Tables, lines: readonly Line[]): void {
  const lastTokens = new Map(linesOf(lines, 'step').map((line) => [stepKey(line), line.token]));
  const recorded = new Map(
    [...tables.steps].filter(([, step]) => isBody(step)).map(([key, step]) => [key, step.value as string]),
  );
  expect(Object.fromEntries(lastTokens), 'the last execution of each step and the recorded one').toEqual(
    Object.fromEntries(recorded),
  );
}

/** Some run of each workflow slept until the recorded time. One that had lost the workflow went by a time of its own. */
function expectSlept(tables: Tables, lines: readonly Line[]): void {
  const latest = new Map<string, { at: number; until: number }>();
  for (const { workflowID, at, until } of wakings(tables, lines)) {
    latest.set(workflowID, { at: Math.max(at, latest.get(workflowID)?.at ?? 0), until });
  }
  for (const [workflowID, { at, until }] of latest) {
    expect(at, `when "${workflowID}" woke at last`).toBeGreaterThanOrEqual(until);
  }
}

/** When runs woke, and until when their workflow was to sleep. */
function wakings(tables: Tables, lines: readonly Line[]): { workflowID: string; at: number; until: number }[] {
  const woke = linesOf(lines, 'woke');
  return [...tables.steps.values()]
    .filter(({ name }) => name === 'DBOS.sleep')
    .flatMap(({ workflowID, value }) =>
      woke
        .filter((line) => line.workflowID === workflowID)
        .map(({ at }) => ({ workflowID, at, until: value as number })),
    );
}

function expectedTokens(tables: Tables, workflowID: string): unknown[] {
  const steps = [...tables.steps.values()].filter((step) => step.workflowID === workflowID);
  steps.sort((a, b) => a.stepID - b.stepID);
  return steps.flatMap((step) => {
    if (step.name === 'DBOS.getResult') return expectedTokens(tables, step.childWorkflowID ?? '');
    return isBody(step) ? [step.value] : [];
  });
}

/** Steps with a body of ours: neither an operation of the library's nor the start of a child. */
function isBody(step: StepRecord): boolean {
  return !step.name.startsWith('DBOS.') && step.childWorkflowID === null;
}
