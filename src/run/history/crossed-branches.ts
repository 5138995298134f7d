// Looks in a history for branches under `Promise.all` whose operations may get each other's results in a replay. Numbers
// are then in the order of time, and if the names are equal, nothing else tells the branches apart.
import type { StepRecord } from '../../kernel/workflow/records.js';

/** Two operations of one name, and an earlier one that was in flight when the first began and had ended before the other. */
export interface CrossedBranches {
  readonly name: string;
  readonly stepIDs: readonly [number, number];
  readonly besideID: number;
}

/** An operation that was called after another had ended, while one of a lower number was in flight. */
interface Continuation {
  readonly stepID: number;
  readonly besideID: number;
  readonly besideUntil: number;
}

/** An operation with its times. */
interface Timed {
  readonly stepID: number;
  readonly startedAt: number;
  readonly completedAt: number;
}

/** Operations that are looked at. More would take long, and code that branches so does it early. */
const OPERATIONS_MAX = 10_000;

/**
 * The first such pair; undefined if there is none. Waits of ours do not count as operations in flight: code that begins
 * one and awaits it later is common, and does not branch. A gap in the numbers may be the end of a block of numbers.
 */
export function findCrossedBranches(history: Iterable<StepRecord>): CrossedBranches | undefined {
  const continuations = new Map<string, Continuation>();
  let longest: Timed | undefined;
  let firstEnded: Timed | undefined;
  let upcomingID = 0;
  let count = 0;
  for (const { stepID, name, startedAt, completedAt } of history) {
    count += 1;
    if (count > OPERATIONS_MAX) return undefined;
    if (stepID !== upcomingID) {
      continuations.clear();
      longest = firstEnded = undefined;
    }
    upcomingID = stepID + 1;
    if (startedAt === null || completedAt === null || name.startsWith('DBOS.')) continue;
    const earlier = continuations.get(name);
    if (earlier && startedAt >= earlier.besideUntil) {
      return { name, stepIDs: [earlier.stepID, stepID], besideID: earlier.besideID };
    }
    const step = { stepID, startedAt, completedAt };
    if (longest && startedAt >= longest.completedAt) longest = firstEnded = undefined;
    if (longest && firstEnded && !earlier && isAfter(step, firstEnded)) {
      continuations.set(name, { stepID, besideID: longest.stepID, besideUntil: longest.completedAt });
    }
    if (!firstEnded || completedAt < firstEnded.completedAt) firstEnded = step;
    if (!longest || completedAt > longest.completedAt) longest = step;
  }
  return undefined;
}

/** Operations that are called together begin in the same millisecond, in which one may end already. */
function isAfter({ startedAt }: Timed, ended: Timed): boolean {
  return startedAt > ended.startedAt && startedAt >= ended.completedAt;
}
