// How the figures of the queues are put beside each other.
import { times } from '../report.js';
import type { QueueEngine } from './commands.js';

export const ENGINES: readonly QueueEngine[] = ['everstep', 'dbos-5', 'graphile-worker', 'pg-boss'];
export const NAMES: Readonly<Record<QueueEngine, string>> = {
  everstep: 'Everstep',
  'dbos-5': 'DBOS 5.3.0',
  'graphile-worker': 'graphile-worker 0.17.3',
  'pg-boss': 'pg-boss 10.4.2',
};

const MISSING = '–';

export const rate = (perSecond: number | undefined): string =>
  perSecond === undefined ? MISSING : `${Math.round(perSecond).toLocaleString('en')}/s`;
export const milliseconds = (value: number | undefined): string =>
  value === undefined ? MISSING : `${value.toFixed(value < 100 ? 2 : 0)} ms`;
export const whole = (value: number | undefined): string =>
  value === undefined ? MISSING : Math.round(value).toLocaleString('en');

export type Rates = Partial<Record<QueueEngine, number | undefined>>;

/** How many times as fast as each of the peers; nothing for what was not measured. */
export function ratios(own: number | undefined, peers: Rates): string {
  const parts = ENGINES.flatMap((engine) => {
    const peer = peers[engine];
    if (own === undefined || peer === undefined || engine === 'everstep') return [];
    return [`${times(own / peer)} ${NAMES[engine].split(' ')[0]}`];
  });
  return parts.join(', ');
}
