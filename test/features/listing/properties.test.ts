// The filters in SQL against the same in plain code, over workflows of any kind.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countWorkflows, listWorkflows } from '../../../src/features/listing/listing.js';
import type { WorkflowRecord } from '../../../src/kernel/workflow/records.js';
import { StatusString, type WorkflowStatusString } from '../../../src/kernel/workflow/status.js';
import type { GetWorkflowsInput } from '../../../src/features/listing/workflow-query.js';
import { forEachDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { insert, workflow } from './rows.js';

const STATUSES = Object.keys(StatusString) as WorkflowStatusString[];
const IDS = ['a', 'a-1', 'a_1', 'a%1', 'b', 'B', 'ä', '😀', "o'x", 'a\\1'];
const NAMES = ['n1', 'n2', '%', "'; --", ''];
const INTERNAL = '_dbos_internal_queue';
const TIMES = [1000, 1001, 1002, 1003];
const maybe = <T>(values: readonly T[]): fc.Arbitrary<T | null> => fc.option(fc.constantFrom(...values));

const record: fc.Arbitrary<Partial<WorkflowRecord>> = fc.record({
  status: fc.constantFrom(...STATUSES),
  name: fc.constantFrom(...NAMES),
  authenticatedUser: maybe(NAMES),
  executorID: maybe(NAMES),
  applicationVersion: maybe(NAMES),
  applicationName: maybe(['test', 'other']),
  queueName: maybe([...NAMES, INTERNAL]),
  // A delayed workflow that an engine owns is parked.
  owner: maybe(['engine.1', 'of-another-library']),
  scheduleName: maybe(NAMES),
  parentWorkflowID: maybe(IDS),
  forkedFrom: maybe(IDS),
  wasForkedFrom: fc.boolean(),
  createdAt: fc.constantFrom(...TIMES),
  startedAt: maybe(TIMES),
  completedAt: maybe(TIMES),
});

const oneOrMany = <T>(values: readonly T[]): fc.Arbitrary<T | T[]> =>
  fc.oneof(fc.constantFrom(...values), fc.array(fc.constantFrom(...values), { maxLength: 3 }));
const time = fc.constantFrom(...TIMES).map((at) => new Date(at).toISOString());

const query: fc.Arbitrary<GetWorkflowsInput> = fc.record(
  {
    status: oneOrMany(STATUSES),
    workflowName: oneOrMany(NAMES),
    authenticatedUser: oneOrMany(NAMES),
    executorId: oneOrMany(NAMES),
    applicationVersion: oneOrMany(NAMES),
    applicationName: oneOrMany(['test', 'other', 'third']),
    queueName: oneOrMany([...NAMES, INTERNAL]),
    scheduleName: oneOrMany(NAMES),
    parentWorkflowID: oneOrMany(IDS),
    forkedFrom: oneOrMany(IDS),
    workflow_id_prefix: oneOrMany([...IDS, '', 'w', 'a-1 ']),
    workflowIDs: fc.array(fc.constantFrom('a 0', 'a-1 1', 'b 2', 'none'), { maxLength: 3 }),
    wasForkedFrom: fc.boolean(),
    isFork: fc.boolean(),
    hasParent: fc.boolean(),
    queuesOnly: fc.boolean(),
    startTime: time,
    endTime: time,
    completedAfter: time,
    completedBefore: time,
    dequeuedAfter: time,
    dequeuedBefore: time,
    limit: fc.nat(12),
    offset: fc.nat(4),
    sortDesc: fc.boolean(),
  },
  { requiredKeys: [] },
);
/** Most queries have few fields, or nothing would be found. */
const sparse = fc
  .tuple(query, fc.infiniteStream(fc.nat(4)))
  .map(([whole, dice]) => Object.fromEntries(Object.entries(whole).filter(() => dice.next().value === 0)));

/** A parked workflow is seen as a running one, which has no queue if only its parking has put it into the internal one. */
function seen(record: WorkflowRecord): WorkflowRecord {
  const { status, owner, queueName } = record;
  if (status !== 'DELAYED' || owner !== 'engine.1') return record;
  return { ...record, status: 'PENDING', queueName: queueName === INTERNAL ? null : queueName };
}

function isWanted(stored: WorkflowRecord, input: GetWorkflowsInput): boolean {
  const record = seen(stored);
  const among = (value: string | null, wanted: string | readonly string[] | undefined): boolean =>
    wanted === undefined || [wanted].flat().includes(value as string);
  const within = (at: number | null, from: string | undefined, to: string | undefined): boolean =>
    (from === undefined || (at !== null && at >= Date.parse(from))) &&
    (to === undefined || (at !== null && at <= Date.parse(to)));
  const is = (actual: boolean, wanted: boolean | undefined): boolean => wanted === undefined || actual === wanted;
  const applications = input.applicationName ?? (input.workflowIDs?.length ? undefined : 'test');
  const prefixes = input.workflow_id_prefix;
  return (
    among(record.workflowID, input.workflowIDs) &&
    (prefixes === undefined || [prefixes].flat().some((one) => record.workflowID.startsWith(one))) &&
    among(record.status, input.status) &&
    among(record.name, input.workflowName) &&
    among(record.authenticatedUser, input.authenticatedUser) &&
    among(record.executorID, input.executorId) &&
    among(record.applicationVersion, input.applicationVersion) &&
    (record.applicationName === null || among(record.applicationName, applications)) &&
    among(record.queueName, input.queueName) &&
    among(record.scheduleName, input.scheduleName) &&
    among(record.parentWorkflowID, input.parentWorkflowID) &&
    among(record.forkedFrom, input.forkedFrom) &&
    is(record.wasForkedFrom, input.wasForkedFrom) &&
    is(record.forkedFrom !== null, input.isFork) &&
    is(record.parentWorkflowID !== null, input.hasParent) &&
    (!input.queuesOnly || (record.queueName !== null && ['ENQUEUED', 'PENDING', 'DELAYED'].includes(record.status))) &&
    within(record.createdAt, input.startTime, input.endTime) &&
    within(record.completedAt, input.completedAfter, input.completedBefore) &&
    within(record.startedAt, input.dequeuedAfter, input.dequeuedBefore)
  );
}

/** The order of both databases of the tests: by the bytes of the IDs. */
function compare(a: WorkflowRecord, b: WorkflowRecord): number {
  return a.createdAt - b.createdAt || Buffer.compare(Buffer.from(a.workflowID), Buffer.from(b.workflowID));
}

function expected(records: readonly WorkflowRecord[], input: GetWorkflowsInput): string[] {
  const sorted = records.filter((one) => isWanted(one, input)).sort(compare);
  if (input.sortDesc) sorted.reverse();
  const { offset = 0, limit = Infinity } = input;
  return sorted.slice(offset, offset + limit).map(({ workflowID }) => workflowID);
}

describe('filters', () => {
  forEachDialect((dialect) => {
    test('find in the database what plain code finds', async () => {
      const database = await dialect.create();
      const records = fc
        .sample(record, { numRuns: 400, seed: 1 })
        .map((fields, index) => workflow(`${IDS[index % IDS.length]} ${index}`, fields));
      await insert(database, records);
      const operator = operatorOn(database);
      let found = 0;

      await fc.assert(
        fc.asyncProperty(sparse, async (input) => {
          const before = JSON.stringify(input);
          const ids = (await listWorkflows(operator, input)).map(({ workflowID }) => workflowID);
          found += ids.length;

          expect(ids).toEqual(expected(records, input));
          const { limit: _, offset: __, sortDesc: ___, ...filters } = input;
          expect(await countWorkflows(operator, filters)).toBe(expected(records, filters).length);
          expect(JSON.stringify(input)).toBe(before);
        }),
        { numRuns: 300, seed: 2 },
      );

      // A property that nothing ever fulfils says little.
      expect(found).toBeGreaterThan(500);
    });
  });
});
