// A network that fails at random moments.
import type { Proxy } from '../rig/proxy.js';
import type { RandomSource } from './random.js';

const FAULTS = 40;

/** Breaks a connection again and again until there have been enough faults or the work is over. Tells how often. */
export async function disturb(proxy: Proxy, random: RandomSource, isOver: () => boolean): Promise<number> {
  let faults = 0;
  while (!isOver() && faults < FAULTS) {
    await new Promise((resolve) => setTimeout(resolve, random.below(30)));
    if (random.below(2) === 0) proxy.loseNextAnswer();
    else proxy.loseNextRequest();
    faults += 1;
  }
  proxy.restore();
  return faults;
}
