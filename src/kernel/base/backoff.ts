// Delay before the next attempt: exponential, capped, with jitter.

export interface BackoffPolicy {
  readonly firstMs: number;
  readonly maxMs: number;
  readonly rate: number;
  /** The delay is multiplied by a random factor between `1 - jitter` and `1 + jitter`. */
  readonly jitter: number;
}

/** The delay after `attempt` failures in a row (from 1). */
export function backoffMs(policy: BackoffPolicy, attempt: number, random: () => number = Math.random): number {
  const plainMs = Math.min(policy.firstMs * policy.rate ** (attempt - 1), policy.maxMs);
  return plainMs * (1 - policy.jitter + 2 * policy.jitter * random());
}
