// A workflow that waits, on an engine whose clock the test moves, and ways to see whether it is parked.
import { deferred } from '../../../src/kernel/base/deferred.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import type { TestDialect } from '../../rig/dialects.js';
import { createEngine, engineOf } from '../../rig/engines.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

export const HOUR = 3_600_000;
/** How often engines look for runs to park. */
export const SWEEP_MS = 800;
const config = { applicationVersion: 'v1', executorID: 'one', parkAfterMs: 10_000 };

export interface ParkingScene {
  readonly clock: ManualClock;
  readonly DBOS: DBOSInstance;
  readonly url: string;
}

/** An engine with a clock of its own, not launched. */
export async function createScene(
  dialect: TestDialect,
  more: Partial<DBOSConfig> = {},
  clock = new ManualClock(),
): Promise<ParkingScene> {
  const { DBOS, url } = await createEngine(dialect, { ...config, ...more }, clock.settings);
  return { clock, DBOS, url };
}

export async function statusOf(DBOS: DBOSInstance, workflowID: string): Promise<string | undefined> {
  return (await DBOS.getWorkflowStatus(workflowID))?.status;
}

/** Whether users see that it is out of memory. */
export async function isParked(DBOS: DBOSInstance, workflowID: string): Promise<boolean> {
  return (await DBOS.getWorkflowStatus(workflowID))?.waitingFor !== undefined;
}

export function isRunningIn(DBOS: DBOSInstance, workflowID: string): boolean {
  return engineOf(DBOS).runs.has(workflowID);
}

/** Lets sweeps happen until the workflow is parked and its run has left. */
export async function untilParked({ clock, DBOS }: ParkingScene, workflowID: string, afterMs = 0): Promise<void> {
  await until(() => clock.isArmed(SWEEP_MS));
  if (afterMs > 0) clock.advance(afterMs);
  await until(async () => {
    if (clock.isArmed(SWEEP_MS)) clock.advance(SWEEP_MS);
    return (await isParked(DBOS, workflowID)) && !isRunningIn(DBOS, workflowID);
  });
}

/** Lets several sweeps end. */
export async function sweep({ clock }: ParkingScene, times = 3): Promise<void> {
  for (let count = 0; count < times; count += 1) {
    await until(() => clock.isArmed(SWEEP_MS));
    clock.advance(SWEEP_MS);
  }
  await until(() => clock.isArmed(SWEEP_MS));
}

/** A promise of the application's own, that no operation records. */
export function ownPromise(): { readonly promise: Promise<void>; release(): void } {
  const own = deferred<void>();
  return { promise: own.promise, release: () => own.resolve() };
}
