// The system's clock without its long timers. An engine on it does not poll: whatever it does, it was notified of, or a short
// timer was due. So a test can wait as long as it takes for a notification and still not mistake a poll for one.
import { type Clock, systemClock } from '../../src/kernel/base/clock.js';

/** Longer than the pause between two renewals of the default lease, shorter than the polls of queues and delays. */
const LONG_MS = 12_000;

export const patientClock: Clock = {
  ...systemClock,
  after: (delayMs, run, options) =>
    delayMs < LONG_MS ? systemClock.after(delayMs, run, options) : { cancel: () => {} },
};
