// The limits of a queue as options.
import { checkThat } from '../../model/validation/validation.js';
import { type Option, readOption, text } from '../option.js';

/** A limit, or `none` to take it away. */
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
  globalConcurrency: countLimit('Workflows of it that run at once', ['concurrency']),
  workerConcurrency: countLimit('Workflows of it that one process runs at once'),
  rateLimit: rateLimit('Workflows of it that start in so many seconds'),
  partitionConcurrency: countLimit('The same for each partition'),
  partitionWorkerConcurrency: countLimit('The same for each partition and process'),
  partitionRateLimit: rateLimit('The same for each partition'),
};
