import { describe, expect, test } from 'vitest';
import {
  checkPriority,
  checkQueueName,
  checkQueueParameters,
  limitsOf,
  type QueueParameters,
  toQueueParameters,
  toQueueRecord,
} from '../../../src/features/queue/queue.js';

const recordOf = (parameters: QueueParameters) => toQueueRecord('q', parameters, 'shop');

describe('the name of a queue', () => {
  test('may be anything that is not reserved', () => {
    for (const name of ['mail', 'mail/eu 1', '_dbos', 'dbos_mail', 'ü'])
      expect(() => checkQueueName(name)).not.toThrow();
  });

  test.each([
    ['', 'The name of a queue must'],
    ['  ', 'The name of a queue must'],
    [undefined as unknown as string, 'The name of a queue must'],
    ['_dbos_mail', 'Queue names that begin with "_dbos_" are reserved. Rename the queue "_dbos_mail".'],
    ['_dbos_internal_queue', 'reserved'],
  ])('%j is refused', (name, message) => {
    expect(() => checkQueueName(name)).toThrow(message);
  });
});

describe('the settings of a queue', () => {
  test.each<[QueueParameters]>([
    [{}],
    [{ concurrency: 3 }],
    [{ globalConcurrency: 3, workerConcurrency: 3 }],
    [{ globalConcurrency: 8, workerConcurrency: 4, partitionConcurrency: 8, partitionWorkerConcurrency: 4 }],
    [{ workerConcurrency: 1 }],
    [{ rateLimit: { limitPerPeriod: 1, periodSec: 0.001 } }],
    [{ partitionRateLimit: { limitPerPeriod: 10, periodSec: 3600 } }],
    [{ minPollingIntervalMs: 0.5 }],
    [{ priorityEnabled: true, partitionQueue: true, globalConcurrency: 2 }],
    [{ globalConcurrency: 2_147_483_647 }],
  ])('may be %j', (parameters) => {
    expect(() => checkQueueParameters(parameters)).not.toThrow();
  });

  test.each<[Record<string, unknown>, string]>([
    [{ concurrency: 1, globalConcurrency: 1 }, 'concurrency is the older name of globalConcurrency'],
    [{ concurrency: 0 }, 'concurrency must be an integer from 1 to 2147483647, but is 0.'],
    [{ globalConcurrency: -1 }, 'globalConcurrency must be an integer'],
    [{ globalConcurrency: 1.5 }, 'globalConcurrency must be an integer'],
    [{ globalConcurrency: NaN }, 'globalConcurrency must be an integer'],
    [{ globalConcurrency: 2_147_483_648 }, 'globalConcurrency must be an integer'],
    [{ globalConcurrency: '3' }, 'globalConcurrency must be an integer'],
    [{ workerConcurrency: 0 }, 'workerConcurrency must be an integer'],
    [{ partitionConcurrency: 0 }, 'partitionConcurrency must be an integer'],
    [{ partitionWorkerConcurrency: 0 }, 'partitionWorkerConcurrency must be an integer'],
    [{ rateLimit: { limitPerPeriod: 1 } }, 'rateLimit.periodSec is missing; it must be a positive finite number.'],
    [{ rateLimit: { periodSec: 1 } }, 'rateLimit.limitPerPeriod is missing'],
    [{ rateLimit: { limitPerPeriod: 1, periodSec: 0 } }, 'rateLimit.periodSec must be a positive finite number'],
    [{ rateLimit: { limitPerPeriod: 1, periodSec: -1 } }, 'rateLimit.periodSec must be a positive finite number'],
    [{ rateLimit: { limitPerPeriod: 1, periodSec: Infinity } }, 'rateLimit.periodSec must be a positive finite number'],
    [{ rateLimit: { limitPerPeriod: 1, periodSec: '1' } }, 'rateLimit.periodSec must be a positive finite number'],
    [{ rateLimit: { limitPerPeriod: 0, periodSec: 1 } }, 'rateLimit.limitPerPeriod must be an integer'],
    [{ partitionRateLimit: { limitPerPeriod: 1 } }, 'partitionRateLimit.periodSec is missing'],
    [{ partitionRateLimit: { limitPerPeriod: 0, periodSec: 1 } }, 'partitionRateLimit.limitPerPeriod must be'],
    [
      { workerConcurrency: 3, globalConcurrency: 2 },
      'workerConcurrency (3) must not be greater than globalConcurrency (2). Lower it, or raise globalConcurrency.',
    ],
    [{ workerConcurrency: 3, concurrency: 2 }, 'workerConcurrency (3) must not be greater than globalConcurrency (2)'],
    [{ partitionConcurrency: 3, globalConcurrency: 2 }, 'partitionConcurrency (3) must not be greater'],
    [
      { partitionWorkerConcurrency: 3, partitionConcurrency: 2 },
      'partitionWorkerConcurrency (3) must not be greater than partitionConcurrency (2)',
    ],
    [
      { partitionWorkerConcurrency: 3, workerConcurrency: 2 },
      'partitionWorkerConcurrency (3) must not be greater than workerConcurrency (2)',
    ],
    [
      { partitionWorkerConcurrency: 3, globalConcurrency: 2 },
      'partitionWorkerConcurrency (3) must not be greater than globalConcurrency (2)',
    ],
    [{ minPollingIntervalMs: 0 }, 'minPollingIntervalMs must be a positive finite number, but is 0.'],
    [{ minPollingIntervalMs: -5 }, 'minPollingIntervalMs must be a positive finite number'],
    [{ minPollingIntervalMs: NaN }, 'minPollingIntervalMs must be a positive finite number'],
    [{ minPollingIntervalMs: Infinity }, 'minPollingIntervalMs must be a positive finite number'],
    [{ priorityEnabled: 'yes' }, 'priorityEnabled must be true or false, but is "yes".'],
    [{ partitionQueue: 1 }, 'partitionQueue must be true or false, but is 1.'],
  ])('cannot be %j', (parameters, message) => {
    // What callers without types give.
    expect(() => checkQueueParameters(parameters as QueueParameters)).toThrow(message);
  });

  test('are refused with an error that has a code', () => {
    expect(() => checkQueueParameters({ workerConcurrency: 0 })).toThrow(
      expect.objectContaining({ name: 'InvalidQueueError', code: 'INVALID_QUEUE', dbosErrorCode: 1 }),
    );
  });
});

describe('the row of a queue', () => {
  test('without settings has no limits and looks every second', () => {
    expect(recordOf({})).toEqual({
      name: 'q',
      concurrency: null,
      workerConcurrency: null,
      rateLimitMax: null,
      rateLimitPeriodSec: null,
      isPriorityEnabled: true,
      isPartitionQueue: false,
      pollingIntervalSec: 1,
      partitionConcurrency: null,
      partitionWorkerConcurrency: null,
      partitionRateLimitMax: null,
      partitionRateLimitPeriodSec: null,
      applicationName: 'shop',
    });
  });

  test('holds all settings', () => {
    const record = recordOf({
      globalConcurrency: 10,
      workerConcurrency: 5,
      rateLimit: { limitPerPeriod: 7, periodSec: 2.5 },
      partitionConcurrency: 4,
      partitionWorkerConcurrency: 2,
      partitionRateLimit: { limitPerPeriod: 3, periodSec: 60 },
      minPollingIntervalMs: 250,
      priorityEnabled: false,
    });

    expect(record).toEqual({
      name: 'q',
      concurrency: 10,
      workerConcurrency: 5,
      rateLimitMax: 7,
      rateLimitPeriodSec: 2.5,
      isPriorityEnabled: false,
      isPartitionQueue: true,
      pollingIntervalSec: 0.25,
      partitionConcurrency: 4,
      partitionWorkerConcurrency: 2,
      partitionRateLimitMax: 3,
      partitionRateLimitPeriodSec: 60,
      applicationName: 'shop',
    });
  });

  test('takes the older name of the global concurrency', () => {
    expect(recordOf({ concurrency: 4 }).concurrency).toBe(4);
  });

  test.each<[QueueParameters, boolean]>([
    [{ globalConcurrency: 1 }, false],
    [{ partitionConcurrency: 1 }, true],
    [{ partitionWorkerConcurrency: 1 }, true],
    [{ partitionRateLimit: { limitPerPeriod: 1, periodSec: 1 } }, true],
    [{ partitionQueue: true }, true],
    [{ partitionQueue: false }, false],
    [{ partitionQueue: false, partitionConcurrency: 1 }, true],
  ])('says of %j whether it is partitioned: %j', (parameters, isPartitionQueue) => {
    expect(recordOf(parameters).isPartitionQueue).toBe(isPartitionQueue);
  });

  test('gives the settings back', () => {
    const parameters: QueueParameters = {
      globalConcurrency: 10,
      workerConcurrency: 5,
      rateLimit: { limitPerPeriod: 7, periodSec: 2.5 },
      partitionConcurrency: 4,
      partitionWorkerConcurrency: 2,
      partitionRateLimit: { limitPerPeriod: 3, periodSec: 60 },
      minPollingIntervalMs: 333,
      priorityEnabled: true,
      partitionQueue: true,
    };

    expect(toQueueParameters(recordOf(parameters))).toEqual(parameters);
    expect(toQueueParameters(recordOf({}))).toEqual({
      minPollingIntervalMs: 1000,
      priorityEnabled: true,
      partitionQueue: false,
    });
  });
});

describe('the limits of a queue', () => {
  const none = { concurrency: null, workerConcurrency: null, rate: null };

  test('are none without settings', () => {
    expect(limitsOf(recordOf({}))).toEqual({ whole: none, partition: null });
  });

  test('hold for the whole queue', () => {
    const limits = limitsOf(
      recordOf({ globalConcurrency: 3, workerConcurrency: 2, rateLimit: { limitPerPeriod: 5, periodSec: 1.5 } }),
    );

    const whole = { concurrency: 3, workerConcurrency: 2, rate: { max: 5, periodMs: 1500 } };
    expect(limits).toEqual({ whole, partition: null });
  });

  test('hold for partitions beside those of the whole queue', () => {
    const limits = limitsOf(recordOf({ globalConcurrency: 3, partitionConcurrency: 1 }));

    expect(limits).toEqual({ whole: { ...none, concurrency: 3 }, partition: { ...none, concurrency: 1 } });
  });

  test('of the older kind of partitioned queue hold for each partition', () => {
    const limits = limitsOf(
      recordOf({
        partitionQueue: true,
        concurrency: 3,
        workerConcurrency: 2,
        rateLimit: { limitPerPeriod: 5, periodSec: 1 },
      }),
    );

    const partition = { concurrency: 3, workerConcurrency: 2, rate: { max: 5, periodMs: 1000 } };
    expect(limits).toEqual({ whole: none, partition });
  });

  test('with the older flag beside limits for partitions keep what each says', () => {
    const limits = limitsOf(recordOf({ partitionQueue: true, concurrency: 3, partitionConcurrency: 1 }));

    expect(limits).toEqual({ whole: { ...none, concurrency: 3 }, partition: { ...none, concurrency: 1 } });
  });

  test('of a rate never shorten its period', () => {
    const limits = limitsOf(recordOf({ rateLimit: { limitPerPeriod: 1, periodSec: 0.0001 } }));

    expect(limits.whole.rate).toEqual({ max: 1, periodMs: 1 });
  });
});

describe('a priority', () => {
  test.each([0, 1, 2_147_483_647])('may be %d', (priority) => {
    expect(() => checkPriority(priority)).not.toThrow();
  });

  test.each([-1, 1.5, NaN, Infinity, 2_147_483_648, '1' as unknown as number])('cannot be %s', (priority) => {
    expect(() => checkPriority(priority)).toThrow(
      expect.objectContaining({ name: 'DBOSInvalidQueuePriorityError', dbosErrorCode: 29 }),
    );
  });
});
