import { describe, expect, test } from 'vitest';
import { type Clock, systemClock } from '../../src/kernel/base/clock.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import {
  CommitUnknownError,
  DatabaseAccessError,
  DatabaseBusyError,
  DatabaseCorruptError,
  DatabaseFullError,
  DatabaseStatementError,
  DatabaseUnavailableError,
} from '../../src/kernel/errors/database-errors.js';
import { classifyFailure, withRetry } from '../../src/database/retry.js';

/** A clock whose waits are over at once and are noted. */
function setup() {
  const waits: number[] = [];
  const clock: Clock = {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    after(delayMs, run) {
      waits.push(delayMs);
      const handle = setImmediate(run);
      return { cancel: () => clearImmediate(handle) };
    },
  };
  const warnings: unknown[] = [];
  const logger = { ...silentLogger, warn: (entry: unknown) => warnings.push(entry) };
  return { waits, clock, logger, warnings };
}

/** Fails with each error in turn, then succeeds. */
function failing(errors: unknown[]) {
  let calls = 0;
  const operation = async (): Promise<string> => {
    const error = errors[calls];
    calls += 1;
    if (error) throw error as Error;
    return 'done';
  };
  return { operation, calls: () => calls };
}

describe('withRetry', () => {
  test('transient failures are repeated with growing, jittered waits, and reported once', async () => {
    const { waits, clock, logger, warnings } = setup();
    const { operation, calls } = failing(Array.from({ length: 6 }, () => new DatabaseUnavailableError('away.')));

    const result = await withRetry(operation, { clock, logger, isIdempotent: false });

    expect(result).toBe('done');
    expect(calls()).toBe(7);
    waits.forEach((waitMs, index) => {
      expect(waitMs).toBeGreaterThanOrEqual(25 * 2 ** index);
      expect(waitMs).toBeLessThanOrEqual(75 * 2 ** index);
    });
    expect(warnings).toHaveLength(1);
  });

  test('a commit of unknown outcome is repeated only if the operation is idempotent', async () => {
    const { clock, logger } = setup();
    const unknown = new CommitUnknownError('lost');
    const once = failing([unknown]);
    const again = failing([unknown]);

    await expect(withRetry(once.operation, { clock, logger, isIdempotent: false })).rejects.toBe(unknown);
    await expect(withRetry(again.operation, { clock, logger, isIdempotent: true })).resolves.toBe('done');

    expect(once.calls()).toBe(1);
    expect(again.calls()).toBe(2);
  });

  test('a failure for good is not repeated', async () => {
    const { clock, logger } = setup();
    const { operation, calls } = failing([new DatabaseStatementError('no such column', { sqlState: '42703' })]);

    await expect(withRetry(operation, { clock, logger, isIdempotent: true })).rejects.toThrow('no such column');

    expect(calls()).toBe(1);
  });

  test('a condition of the database is waited out only by who is patient', async () => {
    const { clock, logger, warnings } = setup();
    const conditions = Array.from({ length: 61 }, () => new DatabaseAccessError('logins are refused.'));
    const patient = failing(conditions);

    await expect(withRetry(failing(conditions).operation, { clock, logger, isIdempotent: true })).rejects.toThrow();
    const waited = withRetry(patient.operation, { clock, logger, isIdempotent: true, isPatient: true });

    await expect(waited).resolves.toBe('done');
    expect(patient.calls()).toBe(62);
    expect(warnings).toHaveLength(3);
  });

  test('the signal ends the waiting', async () => {
    const { logger } = setup();
    const controller = new AbortController();
    const { operation } = failing(Array.from({ length: 99 }, () => new DatabaseUnavailableError('away')));

    const retrying = withRetry(operation, {
      clock: systemClock,
      logger,
      isIdempotent: true,
      signal: controller.signal,
    });
    const refused = expect(retrying).rejects.toThrow('stopped');
    setImmediate(() => controller.abort(new Error('stopped')));

    await refused;
  });

  test.each([
    [new DatabaseUnavailableError('x'), 'transient'],
    [new DatabaseBusyError('x'), 'transient'],
    [new DatabaseFullError('x'), 'transient'],
    [new CommitUnknownError('x'), 'unknown'],
    [new DatabaseAccessError('x'), 'condition'],
    [new DatabaseCorruptError('x'), 'condition'],
    [new DatabaseStatementError('serialization', { sqlState: '40001' }), 'transient'],
    [new DatabaseStatementError('deadlock', { sqlState: '40P01' }), 'transient'],
    [new DatabaseStatementError('too many connections', { sqlState: '53300' }), 'transient'],
    [new DatabaseStatementError('starting up', { sqlState: '57P03' }), 'transient'],
    [new DatabaseStatementError('statement timeout', { sqlState: '57014' }), 'transient'],
    [new DatabaseStatementError('read-only during a failover', { sqlState: '25006' }), 'transient'],
    [new DatabaseStatementError('lock timeout', { sqlState: '55P03' }), 'transient'],
    [new DatabaseStatementError('I/O error', { sqlState: '58030' }), 'condition'],
    [new DatabaseStatementError('internal error', { sqlState: 'XX000' }), 'condition'],
    [new DatabaseStatementError('raised by a trigger', { sqlState: 'P0001' }), 'condition'],
    [new DatabaseStatementError('permission denied', { sqlState: '42501' }), 'condition'],
    [new DatabaseStatementError('cardinality', { sqlState: '21000' }), 'final'],
    [new DatabaseStatementError('NUL character', { sqlState: '22021' }), 'final'],
    [new DatabaseStatementError('unique', { sqlState: '23505' }), 'final'],
    [new DatabaseStatementError('no such table', { sqlState: '42P01' }), 'final'],
    [new DatabaseStatementError('index row too large', { sqlState: '54000' }), 'final'],
    [new DatabaseStatementError('constraint', { sqlState: 'SQLITE_CONSTRAINT_NOTNULL' }), 'final'],
    [new DatabaseStatementError('out of memory', { sqlState: 'SQLITE_NOMEM' }), 'condition'],
    [new Error('x'), 'final'],
    ['not even an error', 'final'],
  ])('%s is %s', (error, expected) => {
    expect(classifyFailure(error)).toBe(expected);
  });
});
