import { describe, expect, test } from 'vitest';
import { durationMs } from '../../../src/kernel/base/duration.js';
import { invariant } from '../../../src/kernel/base/assert.js';
import { backoffMs } from '../../../src/kernel/base/backoff.js';
import { sleep, systemClock } from '../../../src/kernel/base/clock.js';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { Mutex } from '../../../src/kernel/base/mutex.js';
import { Semaphore } from '../../../src/kernel/base/mutex.js';
import { withTimeLimit } from '../../../src/kernel/base/time-limit.js';
import { locateDatabase, withoutPasswords } from '../../../src/kernel/base/url.js';
import { ManualClock } from '../../rig/manual-clock.js';

describe('clock', () => {
  test('an aborted sleep rejects with the reason of the signal', async () => {
    const controller = new AbortController();
    const sleeping = sleep(systemClock, 60_000, controller.signal);

    controller.abort(new Error('enough'));

    await expect(sleeping).rejects.toThrow('enough');
    await expect(sleep(systemClock, 60_000, controller.signal)).rejects.toThrow('enough');
  });

  test('a delay longer than the timers of Node can hold does not fire at once', async () => {
    let hasFired = false;

    const timer = systemClock.after(2 ** 40, () => (hasFired = true));
    await sleep(systemClock, 20);
    timer.cancel();

    expect(hasFired).toBe(false);
  });
});

describe('a time limit', () => {
  test('leaves the outcome of a promise that settles in time, and no timer', async () => {
    const clock = new ManualClock();

    await expect(withTimeLimit(clock, 100, Promise.resolve('value'), () => 'late')).resolves.toBe('value');
    await expect(withTimeLimit(clock, 100, Promise.reject(new Error('failed')), () => 'late')).rejects.toThrow(
      'failed',
    );

    expect(clock.isArmed(100)).toBe(false);
  });

  test('gives what the caller returns or throws when the time is up, and ignores a late failure', async () => {
    const clock = new ManualClock();
    const failing = deferred<string>();

    const returned = withTimeLimit(clock, 100, failing.promise, () => 'late');
    const thrown = withTimeLimit(clock, 100, failing.promise, () => {
      throw new Error('too late');
    });
    thrown.catch(() => {});
    clock.advance(100);
    failing.reject(new Error('failed'));

    await expect(returned).resolves.toBe('late');
    await expect(thrown).rejects.toThrow('too late');
  });
});

describe('mutex and semaphore', () => {
  test('the mutex admits one at a time, in the order of asking, also after a failure', async () => {
    const mutex = new Mutex();
    const log: string[] = [];
    const job = (name: string, fails = false) =>
      mutex.run(async () => {
        log.push(`${name} in`);
        await new Promise((resolve) => setImmediate(resolve));
        log.push(`${name} out`);
        if (fails) throw new Error(name);
      });

    await Promise.allSettled([job('a'), job('b', true), job('c')]);

    expect(log).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
    expect(mutex.isLocked).toBe(false);
  });

  test('the semaphore never admits more than its permits', async () => {
    const semaphore = new Semaphore(3);
    let running = 0;
    let most = 0;

    await Promise.all(
      Array.from({ length: 20 }, () =>
        semaphore.run(async () => {
          running += 1;
          most = Math.max(most, running);
          await new Promise((resolve) => setImmediate(resolve));
          running -= 1;
        }),
      ),
    );

    expect(most).toBe(3);
    expect(semaphore.free).toBe(3);
  });
});

describe('backoff', () => {
  test('it doubles up to its ceiling and is spread by jitter', () => {
    const policy = { firstMs: 100, maxMs: 1000, rate: 2, jitter: 0.5 };

    expect([1, 2, 3, 4, 5, 60].map((attempt) => backoffMs(policy, attempt, () => 0.5))).toEqual([
      100, 200, 400, 800, 1000, 1000,
    ]);
    expect(backoffMs(policy, 1, () => 0)).toBe(50);
    expect(backoffMs(policy, 1, () => 1)).toBe(150);
  });
});

describe('url', () => {
  test.each([
    ['sqlite:///app.sqlite', { kind: 'sqlite', path: 'app.sqlite' }],
    ['sqlite:////var/lib/app.sqlite', { kind: 'sqlite', path: '/var/lib/app.sqlite' }],
    ['sqlite:///C:/data/app.sqlite', { kind: 'sqlite', path: 'C:/data/app.sqlite' }],
    ['sqlite:app.sqlite', { kind: 'sqlite', path: 'app.sqlite' }],
    ['sqlite::memory:', { kind: 'sqlite', path: ':memory:' }],
    ['sqlite:///:memory:', { kind: 'sqlite', path: ':memory:' }],
    ['postgres://u@h/d', { kind: 'postgres', url: 'postgres://u@h/d' }],
    ['postgresql://u@h/d', { kind: 'postgres', url: 'postgresql://u@h/d' }],
    ['mysql://u@h/d', undefined],
    ['sqlite:', undefined],
    ['', undefined],
  ])('%s is located', (url, expected) => {
    expect(locateDatabase(url)).toEqual(expected);
  });

  test('masking passwords takes time in proportion to the text', () => {
    const started = process.cpuUsage();

    for (const part of ['a', 'a://', 'a://b:', 'password ', "pwd='", '@', 'a:@']) {
      withoutPasswords(part.repeat(200_000 / part.length));
    }

    expect(process.cpuUsage(started).user).toBeLessThan(1_500_000);
  });

  test.each([
    'cannot reach postgresql://user:s3cret@host:5432/db',
    'postgresql://user:s3cret@host/db?sslmode=require and more',
    'postgresql://user:s3c/r@et@host/db',
    'host=localhost password=s3cret dbname=x',
    `{"password":"s3cret"}`,
    'postgresql://h/d?user=u&password=s3cret',
  ])('no password is left in: %s', (text) => {
    const shown = withoutPasswords(text);

    expect(shown).not.toMatch(/s3cret|s3c|r@et/);
    expect(shown).toContain('***');
  });
});

test('a violated invariant throws with its message', () => {
  expect(() => invariant(false, 'two and two are four')).toThrow('two and two are four');
});

test('what is no duration is refused by name', () => {
  expect(durationMs('30 days', 'retention.completed')).toBe(2_592_000_000);
  expect(() => durationMs('soon', 'retention.completed')).toThrow('retention.completed must be a duration');
});
