import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Codec } from '../../../src/kernel/codec/codec.js';
import * as catalogue from '../../../src/kernel/errors/errors.js';

const {
  DBOSAwaitedWorkflowCancelledError,
  DBOSConflictingWorkflowError,
  DBOSError,
  DBOSExecutorNotInitializedError,
  DBOSInitializationError,
  DBOSInvalidWorkflowInputError,
  DBOSInvalidWorkflowTransitionError,
  DBOSMaxRecoveryAttemptsExceededError,
  DBOSMaxStepRetriesError,
  DBOSNotAuthorizedError,
  DBOSNotRegisteredError,
  DBOSQueueDuplicatedError,
  DBOSStepTimeoutError,
  DBOSUnexpectedStepError,
  DBOSWorkflowCancelledError,
  DBOSWorkflowConflictError,
  PortableWorkflowError,
} = catalogue;

type ErrorClass = new (...args: never[]) => Error;

/** An instance of each exported class, with arguments that suit any of the constructors. */
function instances(): [string, InstanceType<typeof DBOSError>][] {
  return Object.entries(catalogue)
    .filter(([, value]) => typeof value === 'function' && value.prototype instanceof Error)
    .map(([name, value]) => [name, construct(name, value as ErrorClass)] as [string, Error])
    .filter((entry): entry is [string, InstanceType<typeof DBOSError>] => entry[1] instanceof DBOSError);
}

function construct(name: string, constructor: ErrorClass): Error {
  const special: Record<string, unknown[]> = {
    DBOSError: ['a'],
    DBOSMaxStepRetriesError: ['a', 1, [new Error('b')]],
    DBOSUnexpectedStepError: ['a', 1, 'b', 'c'],
  };
  return new constructor(...((special[name] ?? ['a', 'b', 'c']) as never[]));
}

const reference = readFileSync(new URL('../../../docs/reference/errors.md', import.meta.url), 'utf8');

/** The rows of the reference: class, number, code. */
function listed(): string[][] {
  return reference
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) =>
      line
        .split('|')
        .slice(1, 4)
        .map((cell) => cell.trim().replaceAll('`', '')),
    );
}

const NUMBERS: Record<string, number> = {
  DBOSError: 1,
  DBOSInitializationError: 3,
  DBOSWorkflowConflictError: 5,
  DBOSNotRegisteredError: 6,
  DBOSDataValidationError: 9,
  DBOSNotAuthorizedError: 12,
  DBOSConfigKeyTypeError: 14,
  DBOSNonExistentWorkflowError: 16,
  DBOSFailLoadOperationsError: 17,
  DBOSMaxRecoveryAttemptsExceededError: 18,
  DBOSExecutorNotInitializedError: 20,
  DBOSInvalidWorkflowTransitionError: 21,
  DBOSConflictingWorkflowError: 22,
  DBOSMaxStepRetriesError: 23,
  DBOSWorkflowCancelledError: 24,
  DBOSConflictingRegistrationError: 25,
  DBOSUnexpectedStepError: 26,
  DBOSAwaitedWorkflowCancelledError: 27,
  DBOSQueueDuplicatedError: 28,
  DBOSInvalidQueuePriorityError: 29,
  DBOSAwaitedWorkflowExceededMaxRecoveryAttempts: 30,
  DBOSStepTimeoutError: 31,
  DBOSInvalidWorkflowInputError: 32,
  DBOSStreamTimeoutError: 33,
  DBOSStreamNondeterminismError: 34,
  DBOSQueryTimeoutError: 35,
  DBOSWorkflowIDInUseError: 36,
  DBOSStepNondeterminismError: 37,
};

describe('the error catalogue', () => {
  test('has every class of the shared API under its number', () => {
    const numbers = Object.fromEntries(instances().map(([name, error]) => [name, error.dbosErrorCode]));

    expect(numbers).toMatchObject(NUMBERS);
    for (const [name, number] of Object.entries(numbers)) expect(number).toBe(NUMBERS[name] ?? 1);
  });

  test.each(instances())('%s carries its name and a code of its own', (name, error) => {
    expect(error.name).toBe(name);
    expect(error.code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
    expect(error.stack).toContain(`${name}: `);
    // By it, another copy of the package recognises the class.
    expect((error.constructor as unknown as { code: unknown }).code).toBe(error.code);
    expect(instances().filter(([, other]) => other.code === error.code)).toHaveLength(1);
  });

  test('is listed in the reference, class by class, with number and code', () => {
    const rows = instances().map(([name, error]) => [name, String(error.dbosErrorCode), error.code]);

    expect(
      listed()
        .filter(([name]) => name !== 'PortableWorkflowError')
        .sort(),
    ).toEqual(rows.sort());
    expect(listed().map(([name]) => name)).toContain('PortableWorkflowError');
  });

  test('has a code and a row of the reference for each class, and no two alike', () => {
    const rows = listed();
    const codes = instances().map(([, error]) => error.code);

    expect(new Set(codes).size).toBe(codes.length);
    expect(new Set(rows.map(([name]) => name)).size).toBe(rows.length);
    expect(new Set(rows.map(([, , code]) => code)).size).toBe(rows.length);
  });

  test.each(instances())('%s keeps its class, name, code, number and fields when it is stored', async (_, error) => {
    const codec = new Codec();
    const { text, serialization } = await codec.encodeError(error);

    const replayed = (await codec.decodeError(text, serialization)) as Error;

    expect(replayed).not.toBe(error);
    expect(replayed.constructor).toBe(error.constructor);
    const { name, message, code, dbosErrorCode } = error;
    expect(replayed).toMatchObject({ name, message, code, dbosErrorCode });
  });

  test('says in the reference when each occurs and what to do', () => {
    for (const line of reference.split('\n').filter((row) => row.startsWith('| `'))) {
      const cells = line.split(' | ').map((cell) => cell.trim());
      expect(cells, line).toHaveLength(5);
      expect(Math.min(...cells.map((cell) => cell.length)), line).toBeGreaterThan(0);
    }
  });

  test('exports the numbers that callers compare with', () => {
    const { QueryTimeout, QueueDedupIDDuplicated, StepNondeterminism, StreamNondeterminism } = catalogue;
    const { StreamTimeout, UnexpectedStep, WorkflowIDInUse } = catalogue;

    expect([UnexpectedStep, QueueDedupIDDuplicated, StreamTimeout, StreamNondeterminism]).toEqual([26, 28, 33, 34]);
    expect([QueryTimeout, WorkflowIDInUse, StepNondeterminism]).toEqual([35, 36, 37]);
  });
});

describe('documented messages', () => {
  test.each([
    [new DBOSWorkflowConflictError('X'), 'Workflow X is no longer owned by this execution'],
    [new DBOSNotRegisteredError('n'), 'Operation (Name: n) not registered'],
    [
      new DBOSMaxRecoveryAttemptsExceededError('X', 3),
      'Workflow X has exceeded its maximum of 3 execution or recovery attempts. ',
    ],
    [
      new DBOSMaxRecoveryAttemptsExceededError('X'),
      'Workflow X has exceeded its maximum of execution or recovery attempts. ',
    ],
    [new DBOSExecutorNotInitializedError(), 'DBOS not initialized'],
    [new DBOSInvalidWorkflowTransitionError(), 'Invalid workflow state'],
    [new DBOSConflictingWorkflowError('X', 'why'), 'Conflicting workflow invocation with the same ID (X): why'],
    [new DBOSWorkflowCancelledError('X'), 'Workflow X has been cancelled'],
    [
      new DBOSUnexpectedStepError('X', 4, 'E', 'R'),
      'During execution of workflow X step 4, function R was recorded when E was expected. Check that your workflow is deterministic.',
    ],
    [new DBOSAwaitedWorkflowCancelledError('X'), 'Awaited X was cancelled'],
    [new DBOSStepTimeoutError('s', 50), 'Step s timed out after 50ms'],
    [new DBOSNotRegisteredError('n', 'Class is missing'), 'Class is missing'],
  ])('%s begin with what the shared API says', (error, start) => {
    expect(error.message.slice(0, start.length)).toBe(start);
  });

  test('a step that ran out of retries lists what each attempt threw, up to a bound', () => {
    const few = new DBOSMaxStepRetriesError('s', 2, [new Error('one'), new Error('two')]);
    const many = new DBOSMaxStepRetriesError(
      's',
      99,
      Array.from({ length: 99 }, () => new Error('again')),
    );

    expect(few.message).toBe(
      'Step s has exceeded its maximum of 2 retries. Previous errors: Error 1: one. Error 2: two',
    );
    expect(few.errors.map((error) => error.message)).toEqual(['one', 'two']);
    expect(many.message).toContain('Error 20: again. and 79 more');
    expect(many.errors).toHaveLength(99);
  });

  test('an unexpected patch marker is explained', () => {
    const error = new DBOSUnexpectedStepError('X', 4, 'E', 'DBOS.patch-new-flow');

    expect(error.message).toContain('Check that your workflow is deterministic. The record is a patch marker');
  });
});

describe('an error', () => {
  test('has the fields that its arguments give', () => {
    const cause = new Error('low');

    expect(new DBOSInitializationError('m', cause)).toMatchObject({ message: 'm', error: cause, cause });
    expect(new DBOSNotAuthorizedError('m')).toMatchObject({ status: 403 });
    expect(new DBOSNotAuthorizedError('m', 401)).toMatchObject({ status: 401 });
    expect(new DBOSQueueDuplicatedError('w', 'q', 'd')).toMatchObject({
      workflowID: 'w',
      queue: 'q',
      deduplicationID: 'd',
    });
    expect(new DBOSUnexpectedStepError('w', 4, 'E', 'R')).toMatchObject({
      workflowID: 'w',
      stepID: 4,
      expectedName: 'E',
    });
    expect(new catalogue.DBOSStreamTimeoutError('w', 'k', 5)).toMatchObject({
      workflowID: 'w',
      key: 'k',
      timeoutMS: 5,
    });
    expect(new catalogue.DatabaseStatementError('m', { sqlState: '42P01' })).toMatchObject({ sqlState: '42P01' });
    expect(new PortableWorkflowError('m', 'N', 7, { a: 1 })).toMatchObject({
      message: 'm',
      name: 'N',
      code: 7,
      data: { a: 1 },
    });
  });

  test('keeps the error that led to it', () => {
    const cause = new Error('low');

    expect(new DBOSError('m', 1, { cause }).cause).toBe(cause);
    expect(new DBOSWorkflowCancelledError('X', { cause }).cause).toBe(cause);
    expect(new DBOSInvalidWorkflowInputError('w', cause)).toMatchObject({
      cause,
      message: 'Invalid input for workflow w: low',
    });
    expect(new catalogue.DatabaseBusyError('locked', { cause }).cause).toBe(cause);
    expect(new catalogue.UnreadableValueError('f', 'text', { cause }).cause).toBe(cause);
    expect('cause' in new DBOSError('m')).toBe(false);
  });

  test('of a missing driver names the command that installs it', () => {
    expect(new catalogue.SqliteDriverMissingError().message).toContain('npm install better-sqlite3');
  });

  test('is recognised by its number or code, whatever its class', () => {
    const { getDBOSErrorCode, isDataValidationError, isStreamTimeoutError, isWorkflowIDInUseError } = catalogue;

    expect(getDBOSErrorCode(new DBOSWorkflowCancelledError('X'))).toBe(24);
    expect(getDBOSErrorCode(new Error('other'))).toBeUndefined();
    expect(getDBOSErrorCode('text')).toBeUndefined();
    expect(getDBOSErrorCode(null)).toBeUndefined();
    expect(isDataValidationError(Object.assign(new Error('x'), { dbosErrorCode: 9 }))).toBe(true);
    expect(isStreamTimeoutError(Object.assign(new Error('x'), { code: 'STREAM_TIMEOUT' }))).toBe(true);
    expect(isWorkflowIDInUseError(new catalogue.DBOSWorkflowIDInUseError('w', 'PENDING', 'f'))).toBe(true);
    expect(isWorkflowIDInUseError(new DBOSWorkflowCancelledError('X'))).toBe(false);
    expect(isStreamTimeoutError(undefined)).toBe(false);
  });
});
