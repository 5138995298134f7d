import { type DynamicModule, Module } from '@nestjs/common';
import { DurableModule } from './durable.module.ts';
import { OrdersController } from './orders.controller.ts';
import { OrdersService } from './orders.service.ts';
import { StockService } from './stock.service.ts';

@Module({})
export class AppModule {
  static forRoot(systemDatabaseUrl: string): DynamicModule {
    return {
      module: AppModule,
      imports: [DurableModule.forRoot(systemDatabaseUrl)],
      controllers: [OrdersController],
      providers: [OrdersService, StockService],
    };
  }
}
