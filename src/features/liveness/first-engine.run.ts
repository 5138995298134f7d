// Picks one engine of an application, for what one process is enough for.
import { listPeers, type Peer } from './executors.sql.js';
import type { Runtime } from '../../run/runtime.js';

/** Whether this is the first of the application's live engines that qualify, in the order of incarnations. */
export async function isFirstOfApplication(
  { database, applicationName, incarnationID }: Runtime,
  qualifies: (engine: Peer) => boolean = () => true,
): Promise<boolean> {
  const peers = (await listPeers(database)).filter((peer) => !peer.isLeaseOver);
  const own = peers.filter((peer) => peer.applicationName === applicationName && qualifies(peer));
  return own.map((peer) => peer.incarnationID).toSorted()[0] === incarnationID;
}
