// Whether it pays to park a wait. The workflow is replayed when it continues, so a long history asks for a long wait: a
// loop of short steps and sleeps must not replay ever longer histories.
import type { BegunWait } from './run-waits.run.js';

/** How eagerly workflows are parked. */
export interface ParkingPace {
  /** How often the runs that wait are looked at. */
  readonly sweepMs: number;
  /** How long a wait has to be for each operation that would be replayed. */
  readonly msPerOperation: number;
}

export const defaultPace: ParkingPace = { sweepMs: 800, msPerOperation: 100 };

export interface ParkingTerms {
  /** By the database's clock. */
  readonly now: number;
  readonly monotonic: number;
  readonly parkAfterMs: number;
  readonly msPerOperation: number;
  /** How many operations another run would have to replay. */
  readonly performed: number;
}

/**
 * A timer is worth it if it ends late enough. How long anything else will take is not known, so it is worth it once the run
 * has waited for as long.
 */
export function isWorthParking(
  { awaited, endsAt, begunAt }: BegunWait,
  { now, monotonic, parkAfterMs, msPerOperation, performed }: ParkingTerms,
): boolean {
  const priceMs = Math.max(parkAfterMs, performed * msPerOperation);
  if (endsAt !== undefined && endsAt - now < priceMs) return false;
  return awaited === undefined || monotonic - begunAt >= priceMs;
}
