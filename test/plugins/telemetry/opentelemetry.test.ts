import { expect, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { loadTracer } from '../../../src/plugins/telemetry/opentelemetry.js';

function setup(failure: Error) {
  const warnings: unknown[] = [];
  const logger = { ...silentLogger, warn: (message: unknown) => warnings.push(message) };
  return { warnings, tracer: loadTracer({ format: 'legacy', logger, load: () => Promise.reject(failure) }) };
}

test.each(['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'])('without the package, a launch warns (%s)', async (code) => {
  const { tracer, warnings } = setup(Object.assign(new Error('not found'), { code }));

  expect(await tracer).toBeUndefined();

  expect(warnings).toEqual([expect.stringContaining('@opentelemetry/api')]);
});

test('a package that is broken is reported', async () => {
  const { tracer } = setup(new Error('corrupt'));

  await expect(tracer).rejects.toThrow('corrupt');
});
