// What a launch says: which database, version and executor, and what this process serves.
import { withoutPasswords } from '../base/url.js';
import type { Engine } from '../engine/engine.js';

/** How many queues are named. */
const NAMES_MAX = 10;

export function describeLaunch({ runtime, queues, scheduler }: Engine): string {
  const { config, applicationVersion } = runtime;
  const names = queues.known.servedNames;
  const functions = [...runtime.registry.registrations].filter(({ kind }) => kind === 'workflow');
  const listed = names.length > NAMES_MAX ? [...names.slice(0, NAMES_MAX), '…'] : names;
  return [
    `Launched "${config.name}", version ${applicationVersion}, executor ${config.executorID}, `,
    `on ${withoutPasswords(config.store.url)}. `,
    names.length === 0 ? 'No queues' : `Queues: ${listed.join(', ')}`,
    `, ${scheduler.count} schedule(s), ${functions.length} workflow function(s).`,
  ].join('');
}
