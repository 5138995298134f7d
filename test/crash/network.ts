// A network that fails at random moments.
import type { Proxy } from '../rig/proxy.js';
import type { RandomSource } from './random.js';

const FAULTS = 40;

/** Breaks a connection again and again until there have been enough faults or the work is over. */
export async function disturb(
  proxy: Proxy,
  random: RandomSource,
  isOver: () => boolean,
  onFault: () => void = () => {},
): Promise<void> {
  for (let faults = 0; !isOver() && faults < FAULTS; faults += 1) {
    await new Promise((resolve) => setTimeout(resolve, random.below(30)));
    if (random.below(2) === 0) proxy.loseNextAnswer();
    else proxy.loseNextRequest();
    onFault();
  }
  proxy.restore();
}
