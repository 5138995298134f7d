// A process that runs on the peer: `dbos-4` or `dbos-5`.
import { serve } from './peer.mjs';

const settings = JSON.parse(process.argv[2]);
const library = await import(settings.kind);
serve(library.DBOS ? library : library.default, settings);
