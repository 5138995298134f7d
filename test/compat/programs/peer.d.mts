import type { DBOSClient, DBOSInstance } from '../../../src/index.js';

/** What a process of `peer.mjs` is started with. */
export interface PeerSettings {
  readonly kind: 'dbos-4' | 'dbos-5' | 'everstep';
  readonly url: string;
  /** Of `DBOS.setConfig`. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly queues?: readonly (readonly [name: string, options: Readonly<Record<string, unknown>>])[];
}

export function serve(
  library: { readonly DBOS: DBOSInstance; readonly DBOSClient: typeof DBOSClient },
  settings: PeerSettings,
): void;
