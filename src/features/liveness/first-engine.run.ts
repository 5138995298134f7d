// Picks one engine of an application, for what one process is enough for.
import { listPeers } from './executors.sql.js';
import type { Runtime } from '../../run/runtime.js';

/** Whether this is the first of the application's live engines, in the order of incarnations. */
export async function isFirstOfApplication({ database, applicationName, incarnationID }: Runtime): Promise<boolean> {
  const peers = (await listPeers(database)).filter((peer) => !peer.isLeaseOver);
  const own = peers.filter((peer) => peer.applicationName === applicationName).map((peer) => peer.incarnationID);
  return own.toSorted()[0] === incarnationID;
}
