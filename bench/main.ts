// `npm run bench -- <name>`: measures and prints. Figures are ratios within one run; nothing here passes or fails.
import { benchEngine } from './engine.js';
import { benchQueues } from './queues.js';
import { benchManagement } from './management.js';
import { benchMessages } from './messages.js';
import { benchParked } from './parked.js';
import { benchPlugins } from './plugins.js';
import { benchSchedules } from './schedules.js';
import { benchStore } from './store.js';

const BENCHES: Record<string, () => Promise<void>> = {
  store: benchStore,
  engine: benchEngine,
  queues: benchQueues,
  messages: benchMessages,
  schedules: benchSchedules,
  management: benchManagement,
  parked: benchParked,
  plugins: benchPlugins,
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`Unknown benchmark: ${unknown.join(', ')}. There is: ${Object.keys(BENCHES).join(', ')}.`);
  process.exitCode = 2;
} else {
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (names.length === 0 || names.includes(name)) await bench();
  }
}
