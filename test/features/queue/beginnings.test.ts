import { expect, test } from 'vitest';
import { Beginnings } from '../../../src/features/queue/beginnings.run.js';

const a = { workflowID: 'a', owner: 'me.1' };
const b = { workflowID: 'b', owner: 'me.1' };

test('a claim holds what it got until all of it runs', () => {
  const beginnings = new Beginnings();
  const beginning = beginnings.add('me.1');
  const isHeldBefore = beginnings.hold(a);
  beginning.expect(['a']);
  const held = [a, b, { ...a, owner: 'me.2' }].map((owned) => beginnings.hold(owned));
  beginnings.end(beginning);

  expect([isHeldBefore, held, beginnings.hold(a)]).toEqual([false, [true, false, false], false]);
});

test('what is changed from the sending of a claim on is in doubt, once', () => {
  const beginnings = new Beginnings();
  const beginning = beginnings.add('me.1');
  beginnings.noteChanges(['a', 'other']);
  beginning.expect(['a', 'b']);

  const first = beginning.takeDoubtful([a, b]);
  const second = beginning.takeDoubtful([a, b]);
  beginnings.noteChanges(['b', 'other']);

  expect([first, second, beginning.takeDoubtful([a, b])]).toEqual([[a], [], [b]]);
});

test.each([
  ['before it is known what the claim got', false],
  ['after that', true],
])('all is in doubt, once, if anything may have changed %s', (_, isKnown) => {
  const beginnings = new Beginnings();
  const beginning = beginnings.add('me.1', isKnown ? ['a', 'b'] : undefined);
  beginnings.noteChanges(['']);
  if (!isKnown) beginning.expect(['a', 'b']);

  expect([beginning.takeDoubtful([a, b]), beginning.takeDoubtful([a, b])]).toEqual([[a, b], []]);
});

test('what another claim of this engine gets is in doubt in the earlier one', () => {
  const beginnings = new Beginnings();
  const [earlier, later] = [beginnings.add('me.1', ['a', 'b']), beginnings.add('me.2')];
  later.expect(['a']);
  beginnings.noteChanges(['a'], later);

  expect([earlier.takeDoubtful([a, b]), later.takeDoubtful([a])]).toEqual([[a], []]);
});
