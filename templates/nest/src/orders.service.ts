import { Inject, Injectable } from '@nestjs/common';
import { ConfiguredInstance, DBOS } from 'everstep';
import { StockService } from './stock.service.ts';

/** Its name lets another process find the object again when it continues a workflow. */
@Injectable()
export class OrdersService extends ConfiguredInstance {
  readonly #stock: StockService;

  // tsx does not emit the types of parameters, by which Nest would find the provider.
  constructor(@Inject(StockService) stock: StockService) {
    super('orders');
    this.#stock = stock;
  }

  /** Continues after a crash where it stopped, without repeating a step that is recorded. */
  @DBOS.workflow({ name: 'order' })
  async order(item: string): Promise<string> {
    const reservation = await DBOS.runStep(() => this.#stock.reserve(item), { name: 'reserve' });
    return DBOS.runStep(() => this.#stock.ship(reservation), { name: 'ship' });
  }
}
