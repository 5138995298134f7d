// Random numbers that can be had again: a failed test names its seed, and CRASH_SEED repeats it.

export interface RandomSource {
  readonly seed: number;
  /** A whole number from 0 up to, but not including, the limit. */
  below(limit: number): number;
}

export function randomSource(fixedSeed?: number): RandomSource {
  const given = Number(process.env['CRASH_SEED']);
  const seed = given > 0 ? given : (fixedSeed ?? Math.floor(Math.random() * 2 ** 31));
  let state = seed;
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
  return { seed, below: (limit) => Math.floor(next() * limit) };
}

/** Runs a test body; what it throws names the seed. */
export async function withSeed(body: (random: RandomSource) => Promise<void>): Promise<void> {
  const random = randomSource();
  try {
    await body(random);
  } catch (error) {
    throw new Error(`With CRASH_SEED=${random.seed}: ${(error as Error).message}`, { cause: error });
  }
}
