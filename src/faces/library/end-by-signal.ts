// Ends this process by a signal, so that its parent sees why it ended.
import { constants } from 'node:os';

/** The first process of a container. The kernel delivers it only signals that it has a handler for. */
const INIT_PID = 1;

export function endBySignal(signal: NodeJS.Signals): void {
  process.kill(process.pid, signal);
  // Still here: as a shell would put it. Other listeners of the application decide for themselves.
  if (process.pid === INIT_PID && process.listenerCount(signal) === 0) process.exit(128 + constants.signals[signal]);
}
