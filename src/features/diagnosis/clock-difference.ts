// Whether the clock of this machine and that of the database are too far apart.
const DIFFERENCE_MAX_MS = 5000;

/** What is wrong with a clock that is ahead of the database's by so much; undefined if nothing is. */
export function faultOfClock(aheadMs: number): string | undefined {
  if (Math.abs(aheadMs) <= DIFFERENCE_MAX_MS) return undefined;
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  return (
    `The local clock is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the database's. ` +
    'Synchronize both with a time server, because times and deadlines are compared.'
  );
}
