// The types of `shop.mjs`, for the test of the pictures.
import type { DBOSInstance } from '../../src/faces/library/dbos.js';

export interface Shop {
  readonly DBOS: DBOSInstance;
  readonly url: string;
  close(): Promise<void>;
}

export function openShop(options?: { readonly port?: number }): Promise<Shop>;
