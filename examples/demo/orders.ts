// Shared by both sides of the demo: the orders, and the log of side effects. A step writes one line when it starts and one
// when it ends. Like a charged card, the lines outlive the process that wrote them.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export interface Order {
  readonly id: string;
  readonly parcels: number;
}

export const ORDERS: readonly Order[] = [
  { id: 'order-1', parcels: 2 },
  { id: 'order-2', parcels: 3 },
  { id: 'order-3', parcels: 1 },
  { id: 'order-4', parcels: 3 },
  { id: 'order-5', parcels: 2 },
  { id: 'order-6', parcels: 1 },
];

export const SLEEP = 'sleep';
export const RECEIPT = 'receipt';

/** The effects of an order, in column order. */
export function effectsOf(order: Order): string[] {
  const parcels = Array.from({ length: order.parcels }, (_, index) => parcelName(index));
  return ['reserve', 'charge', ...parcels, RECEIPT];
}

export function parcelName(index: number): string {
  return `parcel ${index + 1}`;
}

/** One line of the log. */
export interface Entry {
  readonly process: number;
  readonly order: string;
  readonly effect: string;
  readonly stepID: number;
  readonly event: 'begin' | 'end';
}

export function writeEntry(logPath: string, entry: Entry): void {
  appendFileSync(logPath, `${JSON.stringify(entry)}\n`);
}

/** All complete lines. The last one may be half written. */
export function readEntries(logPath: string): Entry[] {
  if (!existsSync(logPath)) return [];
  const lines = readFileSync(logPath, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Entry);
}
