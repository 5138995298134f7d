// What plugins cost.
import { benchReceivers } from './receivers/figures.js';

export async function benchPlugins(): Promise<void> {
  await benchReceivers();
}
