// `npm run bench -- <name>`: measures and prints. Figures are ratios within one run; nothing here passes or fails.
import { benchDashboard } from './dashboard.js';
import { benchEngine } from './engine.js';
import { benchHistory } from './history.js';
import { benchQueues } from './queues.js';
import { benchManagement } from './management.js';
import { benchMessages } from './messages.js';
import { benchOutbox, OUTBOX_PARTS } from './outbox.js';
import { benchParked } from './parked.js';
import { benchPlugins } from './plugins.js';
import { benchScale, SCALE_PARTS } from './scale.js';
import { benchSchedules } from './schedules.js';
import { benchStore } from './store.js';
import { benchWeight } from './weight.js';

const BENCHES: Record<string, (parts: readonly string[]) => Promise<void>> = {
  store: benchStore,
  engine: benchEngine,
  queues: benchQueues,
  messages: benchMessages,
  schedules: benchSchedules,
  management: benchManagement,
  parked: benchParked,
  plugins: benchPlugins,
  weight: benchWeight,
  outbox: benchOutbox,
  scale: benchScale,
  history: benchHistory,
  dashboard: benchDashboard,
};

/** The benchmarks that can be run in parts: the words after their name. */
const PARTS: Record<string, object> = { outbox: OUTBOX_PARTS, scale: SCALE_PARTS };

const [first = '', ...rest] = process.argv.slice(2);
const parts = rest.length > 0 && rest.every((part) => part in (PARTS[first] ?? {})) ? rest : [];
const names = process.argv.slice(2, 3 + rest.length - parts.length);
const unknown = names.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`Unknown benchmark: ${unknown.join(', ')}. There is: ${Object.keys(BENCHES).join(', ')}.`);
  process.exitCode = 2;
} else {
  for (const [name, bench] of Object.entries(BENCHES)) {
    if (names.length === 0 || names.includes(name)) await bench(parts);
  }
}
