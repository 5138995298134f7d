import { describe, expect, test } from 'vitest';
import { sleep, systemClock } from '../../../src/kernel/base/clock.js';
import { Service } from '../../../src/kernel/base/service.js';

function setup(body?: (signal: AbortSignal) => Promise<void>) {
  const failures: unknown[] = [];
  const starts: number[] = [];
  const service = new Service(
    body ??
      (async (signal) => {
        starts.push(1);
        await sleep(systemClock, 60_000, signal);
      }),
    (error) => failures.push(error),
  );
  return { service, failures, starts };
}

describe('Service', () => {
  test('stopping interrupts a wait and is not a failure', async () => {
    const { service, failures, starts } = setup();
    service.start();
    await new Promise((resolve) => setImmediate(resolve));

    await service.stop();

    expect(service.isRunning).toBe(false);
    expect(starts).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  test('starting twice runs one loop; stopping twice or unstarted does no harm', async () => {
    const { service, starts } = setup();
    await service.stop();

    service.start();
    service.start();
    await new Promise((resolve) => setImmediate(resolve));
    await service.stop();
    await service.stop();

    expect(starts).toHaveLength(1);
  });

  test('it can be started again after a stop', async () => {
    const { service, starts } = setup();
    service.start();
    await new Promise((resolve) => setImmediate(resolve));
    await service.stop();

    service.start();
    await new Promise((resolve) => setImmediate(resolve));
    await service.stop();

    expect(starts).toHaveLength(2);
  });

  test('a loop that fails reports it and is not running any more', async () => {
    const { service, failures } = setup(async () => {
      throw new Error('broken');
    });

    service.start();
    await new Promise((resolve) => setImmediate(resolve));

    expect(failures).toEqual([new Error('broken')]);
    expect(service.isRunning).toBe(false);
    await service.stop();
  });
});
