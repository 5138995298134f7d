import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const SOURCE = new URL('../../../src/', import.meta.url);

/** Where an error is made that is not of the catalogue, and why. */
const ALLOWED: Readonly<Record<string, string>> = {
  'base/assert.ts: new Error': 'a violated invariant is a bug of ours, and base imports nothing',
  'base/log.ts: new Error': 'only its stack is used',
  'codec/revived-error.ts: new Error': "a stored error of the user's, read back",
  'codec/superjson-reader.ts: extends TypeError': 'caught in the codec; users get an UnreadableValueError',
  'control/listing/status.ts: new Error': 'something thrown that is no Error, shown as one',
  'control/runs/row-watcher.ts: new Error': 'ends a wait at its deadline and is caught in the same file',
  'datasource/outcomes.ts: new Error': "an error of the user's without the fields that cannot be stored",
  'engine/parking/run-waits.ts: new Error': 'suspends a wait and is caught in the same file',
  'engine/runs/step.ts: new Error': 'something thrown by a step that is no Error, kept as one',
  'store/notify/bus.ts: new Error': 'something thrown by a subscriber that is no Error, logged as one',
  'store/notify/topics.ts: new TypeError': 'caught by the bus, which drops the notification',
  'store/management/transfer.ts: new Error': 'rolls the transaction back and is caught by the same function',
  'store/migrations/other-library.ts: extends Error': 'rolls the transaction back and is caught by the migrations',
  'store/migrations/stored-code.ts: extends Error': 'rolls the transaction back and is caught by the same function',
  'store/messaging/messages.ts: new Error': 'rolls the transaction back and is caught by the same function',
  'admin/http/refusal.ts: extends Error': 'becomes an HTTP answer',
  'cli/failure.ts: extends Error': 'becomes an exit code',
  'base/duration.ts: new TypeError': 'a duration of code; options are checked before',
  'engine/transactions/completion-cleanup.ts: extends Error':
    'rolls the transaction back and is caught in the same file',
  'outbox/relays/target.ts: new TypeError': 'kept with the dead letter of a message whose option of a target is wrong',
  'outbox/consume/outcomes.ts: extends Error': 'thrown by handlers of the user, to decide what becomes of a message',
  'model/errors/errors-base.ts: extends Error': 'the root of the catalogue',
  'model/errors/errors.ts: extends Error': 'PortableWorkflowError, which is in the catalogue without a code of ours',
  'receiver/http/http-routes.ts: extends Error': 'becomes an HTTP answer',
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
