// What only a worker with Everstep has.
import type { HandLoopOptions } from './hand-loop.js';
import type { DriverCounts } from './statements.js';

export interface Extras {
  readonly counts: DriverCounts;
  rateByHand(options: HandLoopOptions): Promise<number>;
}
