import { Controller, Get, HttpCode, Inject, NotFoundException, Param, Post } from '@nestjs/common';
import { DBOS } from 'everstep';
import { OrdersService } from './orders.service.ts';

@Controller('orders')
export class OrdersController {
  readonly #orders: OrdersService;

  constructor(@Inject(OrdersService) orders: OrdersService) {
    this.#orders = orders;
  }

  @Post(':id')
  @HttpCode(202)
  async place(@Param('id') id: string): Promise<{ workflowID: string }> {
    const workflowID = `order-${id}`;
    await DBOS.startWorkflow(this.#orders, { workflowID }).order(id);
    return { workflowID };
  }

  @Get(':id')
  async show(@Param('id') id: string): Promise<{ status: string; output: unknown }> {
    const found = await DBOS.getWorkflowStatus(`order-${id}`);
    if (!found) throw new NotFoundException('There is no such order.');
    return { status: found.status, output: found.output };
  }
}
