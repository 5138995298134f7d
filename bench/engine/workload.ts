// The workflows of the benchmark, written once against the API that all libraries share.
import type { Library } from './library.js';

export interface Workload {
  /** A workflow with so many no-op steps. */
  readonly steps: (count: number) => Promise<number>;
  /** A workflow of `PAUSING_STEPS` steps that asks `onStep` in each from `PAUSE_AT` on. */
  readonly pausing: () => Promise<number>;
  readonly sleeper: () => Promise<void>;
}

export interface WorkloadHooks {
  onPausingBegins?(): void;
  onPausingStep?(): Promise<void> | void;
}

export const PAUSING_STEPS = 10;
export const PAUSE_AT = 5;
const HOUR_MS = 3_600_000;

export function registerWorkload(library: Library, hooks: WorkloadHooks = {}): Workload {
  const noop = library.registerStep(async (index: number) => index, { name: 'noop' });
  const pausingStep = library.registerStep(
    async (index: number) => {
      if (index >= PAUSE_AT) await hooks.onPausingStep?.();
      return index;
    },
    { name: 'pausingStep' },
  );
  const steps = async (count: number): Promise<number> => {
    for (let index = 0; index < count; index += 1) await noop(index);
    return count;
  };
  const pausing = async (): Promise<number> => {
    hooks.onPausingBegins?.();
    for (let index = 0; index < PAUSING_STEPS; index += 1) await pausingStep(index);
    return PAUSING_STEPS;
  };
  return {
    steps: library.registerWorkflow(steps, { name: 'steps' }),
    pausing: library.registerWorkflow(pausing, { name: 'pausing' }),
    sleeper: library.registerWorkflow(() => library.sleep(HOUR_MS), { name: 'sleeper' }),
  };
}

/** With an executor ID, a process does not take over what those with other IDs run. */
export function configure(library: Library, url: string, executorID?: string): void {
  // The version is given, so that another process of the benchmark may go on with what one has left.
  const config = { name: 'bench', systemDatabaseUrl: url, applicationVersion: 'bench', logLevel: 'error' } as const;
  library.setConfig(executorID === undefined ? config : { ...config, executorID });
}

/** Keeps so many calls of `body` in flight for so long; returns how many have ended per second. */
export async function ratePerSecond(inFlight: number, durationMs: number, body: () => Promise<unknown>) {
  const startedAt = performance.now();
  const endsAt = startedAt + durationMs;
  let count = 0;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (performance.now() < endsAt) {
        await body();
        count += 1;
      }
    }),
  );
  return { count, rate: (count / (performance.now() - startedAt)) * 1000 };
}

export function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}
