// Durations that can be stored.

/** About 30,000 years: the sum with any date can be stored, and is exact in JavaScript. */
export const DURATION_MAX_MS = 1_000_000_000_000_000;
