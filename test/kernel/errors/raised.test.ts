import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const SOURCE = new URL('../../../src/', import.meta.url);

/** Where an error is made that is not of the catalogue, and why. */
const ALLOWED: Readonly<Record<string, string>> = {
  'kernel/base/assert.ts: new Error': 'a violated invariant is a bug of ours, and base imports nothing',
  'kernel/base/log.ts: new Error': 'only its stack is used',
  'kernel/codec/revived-error.ts: new Error': "a stored error of the user's, read back",
  'kernel/codec/superjson-reader.ts: extends TypeError': 'caught in the codec; users get an UnreadableValueError',
  'features/listing/status.ts: new Error': 'something thrown that is no Error, shown as one',
  'operator/row-watcher.ts: new Error': 'ends a wait at its deadline and is caught in the same file',
  'plugins/transaction/outcomes.ts: new Error': "an error of the user's without the fields that cannot be stored",
  'features/parking/run-waits.run.ts: new Error': 'suspends a wait and is caught in the same file',
  'faces/library/functions.ts: new Error': 'only its stack is used',
  'run/run.ts: new Error': 'the reason of the signal of a workflow that has ended',
  'run/step.ts: new Error': 'something thrown by a step that is no Error, kept as one',
  'database/notify/bus.ts: new Error': 'something thrown by a subscriber that is no Error, logged as one',
  'database/notify/topics.ts: new TypeError': 'caught by the bus, which drops the notification',
  'features/transfer/transfer.sql.ts: new Error': 'rolls the transaction back and is caught by the same function',
  'database/migrations/other-library.ts: extends Error': 'rolls the transaction back and is caught by the migrations',
  'database/migrations/stored-code.ts: extends Error': 'rolls the transaction back and is caught by the same function',
  'features/message/messages.sql.ts: new Error': 'rolls the transaction back and is caught by the same function',
  'faces/http/http/refusal.ts: extends Error': 'becomes an HTTP answer',
  'faces/cli/failure.ts: extends Error': 'becomes an exit code',
  'kernel/base/duration.ts: new TypeError': 'a duration of code; options are checked before',
  'plugins/transaction/completion-cleanup.run.ts: extends Error':
    'rolls the transaction back and is caught in the same file',
  'plugins/outbox/relays/target.ts: new TypeError':
    'kept with the dead letter of a message whose option of a target is wrong',
  'plugins/outbox/consume/outcomes.ts: extends Error':
    'thrown by handlers of the user, to decide what becomes of a message',
  'kernel/errors/errors-base.ts: extends Error': 'the root of the catalogue',
  'kernel/errors/errors.ts: extends Error': 'PortableWorkflowError, which is in the catalogue without a code of ours',
  'plugins/receiver/http/http-routes.ts: extends Error': 'becomes an HTTP answer',
};

const MADE =
  /\bnew (?:(?:Type|Range|Syntax|Eval|URI|Reference|Aggregate)?Error|DBOSError)\(|\bclass \w+ extends (?:\w+)?Error\b/g;

/** The errors that the source makes by themselves, as `file: what`. */
function found(): string[] {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.ts'));
  const made = files.flatMap((file) => {
    const code = readFileSync(new URL(file, SOURCE), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    return [...code.matchAll(MADE)].map(([text]) => `${file}: ${text.replace(/^class \w+ /, '').replace('(', '')}`);
  });
  return [...new Set(made)].filter((place) => !/extends (DBOS|Database|Http)Error$/.test(place)).sort();
}

describe('an error that Everstep raises', () => {
  test('is of the catalogue, with a code of its own', () => {
    expect(found()).toEqual(Object.keys(ALLOWED).sort());
  });

  test('is never the base class itself, whose code says nothing', () => {
    expect(found().filter((place) => place.includes('DBOSError'))).toEqual([]);
  });
});
