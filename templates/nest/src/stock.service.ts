import { Injectable } from '@nestjs/common';

@Injectable()
export class StockService {
  async reserve(item: string): Promise<string> {
    console.log(`reserving ${item}`);
    return `reservation of ${item}`;
  }

  async ship(reservation: string): Promise<string> {
    console.log(`shipping the ${reservation}`);
    return `shipped the ${reservation}`;
  }
}
