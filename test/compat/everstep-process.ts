// A process that runs the workflows of `programs/peer.mjs` on Everstep.
import { DBOS, DBOSClient } from '../../src/index.js';
import { type PeerSettings, serve } from './programs/peer.mjs';

serve({ DBOS, DBOSClient }, JSON.parse(process.argv[2] ?? '') as PeerSettings);
