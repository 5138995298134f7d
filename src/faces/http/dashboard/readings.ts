// What the dashboard reads again and again, shared by all viewers.
import { type Overview, OverviewReader, type OverviewWindow } from '../../../features/listing/overview.js';
import type { Clock } from '../../../kernel/base/clock.js';
import type { AttentionItem } from './attention.js';
import { Cached } from './cached.js';
import type { StoreOperator } from '../source.js';

const OVERVIEW_MS = 5000;
const ATTENTION_MS = 10_000;

export class Readings {
  readonly #readers = { '1h': new OverviewReader('1h'), '24h': new OverviewReader('24h') };
  readonly #overviews = new Cached<OverviewWindow, Overview>({ minMs: OVERVIEW_MS });
  readonly #attention = new Cached<'', readonly AttentionItem[]>({ minMs: ATTENTION_MS });

  overview(window: OverviewWindow, operator: StoreOperator): Promise<Overview> {
    return this.#overviews.get(window, operator.clock, () => this.#readers[window].read(operator));
  }

  attention(clock: Clock, read: () => Promise<readonly AttentionItem[]>): Promise<readonly AttentionItem[]> {
    return this.#attention.get('', clock, read);
  }
}
