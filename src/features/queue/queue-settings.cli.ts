// Options for the limits of a queue.
import { checkThat } from '../../kernel/check/validation.js';
import { type Option, readOption, text } from '../../faces/cli/option.js';

/** A limit, or `none` to remove it. */
function limit<T>(
  option: Option<string | undefined>,
  parse: (written: string) => T | undefined,
): Option<T | null | undefined> {
  const check = checkThat<T>(option.placeholder ?? '', (value) => typeof value !== 'string');
  return {
    ...option,
    read(texts, reading) {
      const written = option.read(texts, reading);
      if (written === undefined || written === 'none') return written === undefined ? undefined : null;
      return readOption(check, parse(written) ?? written, reading);
    },
  };
}

const countLimit = (about: string, alias: string[] = []): Option<number | null | undefined> =>
  limit(text(about, { placeholder: 'N|none', aliases: alias }), (written) =>
    /^[1-9]\d*$/.test(written) ? Number(written) : undefined,
  );

const rateLimit = (about: string): Option<{ limitPerPeriod: number; periodSec: number } | null | undefined> =>
  limit(text(about, { placeholder: 'N/SECONDS|none' }), (written) => {
    const [, max, seconds] = /^([1-9]\d*)\/(\d+(?:\.\d+)?)s?$/.exec(written) ?? [];
    return max === undefined ? undefined : { limitPerPeriod: Number(max), periodSec: Number(seconds) };
  });

export const QUEUE_SETTINGS = {
  globalConcurrency: countLimit('Workflows that run at once', ['concurrency']),
  workerConcurrency: countLimit('Workflows that run at once in one process'),
  rateLimit: rateLimit('Workflows that start within a number of seconds'),
  partitionConcurrency: countLimit('Workflows that run at once in one partition'),
  partitionWorkerConcurrency: countLimit('Workflows that run at once in one partition and process'),
  partitionRateLimit: rateLimit('Workflows that start in one partition within a number of seconds'),
};
