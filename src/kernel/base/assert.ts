// Checks for programmer errors. A failed invariant is a bug in Everstep, never something to catch.

/** Throws if the condition does not hold. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`Everstep invariant violated: ${message}`);
}
