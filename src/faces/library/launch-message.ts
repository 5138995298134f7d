// What a launch says: which database, version and executor, and what this process serves.
import { withoutPasswords } from '../../kernel/base/url.js';
import type { Engine } from '../../run/engine.js';
import type { Registry, WorkflowRegistration } from '../../run/registration/registry.js';

/** How many queues are named. */
const NAMES_MAX = 10;

/** What minifiers make of names: one or two characters, perhaps with a digit. */
const MINIFIED = /^[A-Za-z_$]{1,2}\d?$/;

/** A warning about classes of errors whose names change with the next build; undefined if there are none. */
export function warnOfMinifiedErrors({ errors }: Registry): string | undefined {
  const names = errors.minifiedNames;
  if (names.length === 0) return undefined;
  return (
    `The names of the registered classes of errors ${names.join(', ')} look as if a minifier had made them. They change ` +
    'with the next build, which then does not know the errors of this one. Name them: ' +
    'DBOS.registerErrors({ CardDeclined }).'
  );
}

/** A warning about workflows whose names change with the next build; undefined if there are none. */
export function warnOfMinified(registry: Registry): string | undefined {
  const names = [...registry.registrations]
    .filter(
      (one) =>
        one.kind === 'workflow' &&
        !one.isMethod &&
        !hasGivenName(one as WorkflowRegistration) &&
        MINIFIED.test(one.name),
    )
    .map(({ name }) => name);
  if (names.length === 0) return undefined;
  return (
    `The names of workflows ${names.join(', ')} look as if a minifier had made them. They change with the next build, and ` +
    'workflows in flight are then not found. Pass { name } when you register them.'
  );
}

/** A warning about a workflow that is found by the empty name. */
export function warnOfNameless({ registrations }: Registry): string | undefined {
  if (![...registrations].some(({ kind, name }) => kind === 'workflow' && name === '')) return undefined;
  return (
    "A workflow is registered under the name '', by which it is found again after a restart, and no second one can be. " +
    'Name its function, or pass { name }.'
  );
}

function hasGivenName({ config }: WorkflowRegistration): boolean {
  return config.name !== undefined;
}

export function describeLaunch({ runtime, queues, scheduler }: Engine): string {
  const { config, applicationVersion } = runtime;
  const names = queues.known.servedNames;
  const functions = [...runtime.registry.registrations].filter(({ kind }) => kind === 'workflow');
  const listed = names.length > NAMES_MAX ? [...names.slice(0, NAMES_MAX), '…'] : names;
  return [
    `Launched "${config.name}", version ${applicationVersion}, executor ${config.executorID}, `,
    `on ${withoutPasswords(config.store.url)} (${config.databaseReason}). `,
    names.length === 0 ? 'No queues' : `Queues: ${listed.join(', ')}`,
    `, ${scheduler.count} schedule(s), ${functions.length} workflow function(s).`,
  ].join('');
}
