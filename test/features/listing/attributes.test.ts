import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { setWorkflowAttributes, updateWorkflowAttributes } from '../../../src/features/lifecycle/attributes.js';
import { listWorkflows } from '../../../src/features/listing/listing.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { operatorOn } from '../../rig/operators.js';
import { insert, workflow } from './rows.js';

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Containment as the manual of Postgres defines it. */
function contains(value: Json, pattern: Json): boolean {
  if (Array.isArray(pattern)) {
    return Array.isArray(value) && pattern.every((one) => value.some((element) => contains(element, one)));
  }
  if (typeof pattern === 'object' && pattern !== null) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
    return Object.entries(pattern).every(
      ([key, one]) => Object.hasOwn(value, key) && contains(value[key] ?? null, one),
    );
  }
  return value === pattern;
}

const VALUES: { [key: string]: Json }[] = [
  {},
  { a: 1 },
  { a: '1' },
  { a: true },
  { a: null },
  { a: 0 },
  { a: [1, 2, [3]] },
  { a: [{ b: 1, c: 2 }, { b: 3 }] },
  { a: { b: { c: 'd', e: [] } } },
  { 'a.b': 1, '$[0]': 2, 'quote"d': 3, "apos'trophe": 4, 'back\\slash': 5, '': 6, ключ: 'значение', __proto__x: 7 },
  { a: 1.5, b: 0.1, c: 1e300, d: -0.000001, e: 9007199254740991 },
  { a: '%', b: '_', c: `'; DROP TABLE workflow_status; --` },
];
const PATTERNS: { [key: string]: Json }[] = [
  ...VALUES,
  { a: [] },
  { a: [2] },
  { a: [2, 1, 1] },
  { a: [[3]] },
  { a: [3] },
  { a: [{ b: 1 }] },
  { a: [{ b: 1, c: 3 }] },
  { a: [{ b: 1 }, { c: 2 }, { b: 3 }] },
  { a: {} },
  { a: { b: {} } },
  { a: { b: { e: [] } } },
  { a: { b: { c: [] } } },
  { b: 1 },
  { 'quote"d': 3 },
  { '$[0]': 2 },
  { '': 6 },
];

async function setup(dialect: TestDialect, values: readonly { [key: string]: Json }[]) {
  const database = await dialect.create();
  const rows = values.map((value, index) =>
    workflow(`w-${String(index).padStart(3, '0')}`, { attributes: JSON.stringify(value) }),
  );
  await insert(database, [...rows, workflow('without')]);
  const operator = operatorOn(database);
  const matching = async (pattern: Record<string, unknown>): Promise<number[]> =>
    (await listWorkflows(operator, { attributes: pattern })).map(({ workflowID }) => Number(workflowID.slice(2)));
  return { database, operator, matching };
}

const indexes = (values: readonly Json[], pattern: Json): number[] =>
  values.flatMap((value, index) => (contains(value, pattern) ? [index] : []));

describe('attributes', () => {
  forEachDialect((dialect) => {
    test('are found by containment, as Postgres defines it', async () => {
      const { matching } = await setup(dialect, VALUES);

      const found: number[][] = [];
      for (const pattern of PATTERNS) found.push(await matching(pattern));

      expect(found).toEqual(PATTERNS.map((pattern) => indexes(VALUES, pattern)));
    });

    test('are found the same whatever they are', async () => {
      const key = fc.constantFrom('a', 'b', 'c"');
      const scalar = fc.constantFrom<Json>(null, true, false, 0, 1, 1.5, '', 'a', '1');
      const { json } = fc.letrec<{ json: Json; object: { [key: string]: Json } }>((tie) => ({
        json: fc.oneof({ depthSize: 'small' }, scalar, fc.array(tie('json'), { maxLength: 3 }), tie('object')),
        object: fc.dictionary(key, tie('json'), { maxKeys: 3 }),
      }));
      const object = fc.dictionary(key, json, { maxKeys: 3 });
      const values = fc.sample(object, { numRuns: 150, seed: 7 });
      const patterns = [...fc.sample(object, { numRuns: 100, seed: 8 }), ...values.slice(0, 30)];
      const { matching } = await setup(dialect, values);

      for (const pattern of patterns) {
        expect([pattern, await matching(pattern)]).toEqual([pattern, indexes(values, pattern)]);
      }
    });

    test('are changed name by name, and null takes one out', async () => {
      const { operator } = await setup(dialect, [{ a: 1, b: { c: 2, d: 3 }, e: 0.30000000000000004, f: [1] }]);
      const attributes = async () => (await listWorkflows(operator, { workflowIDs: ['w-000'] }))[0]?.attributes;

      await updateWorkflowAttributes(operator, 'w-000', {
        b: { c: null },
        a: null,
        none: null,
        'new "key".x': [{}, null],
      });
      const changed = await attributes();
      await updateWorkflowAttributes(operator, 'w-000', {});
      await updateWorkflowAttributes(operator, 'w-000', { 'new "key".x': 'again' });
      const again = await attributes();
      await setWorkflowAttributes(operator, 'w-000', { z: null });
      const replaced = await attributes();
      await setWorkflowAttributes(operator, 'w-000', null);
      const none = await attributes();
      await updateWorkflowAttributes(operator, 'w-000', { x: 1 });

      expect(changed).toEqual({ b: { c: null }, e: 0.30000000000000004, f: [1], 'new "key".x': [{}, null] });
      expect(again).toEqual({ ...changed, 'new "key".x': 'again' });
      expect(replaced).toEqual({ z: null });
      expect(none).toBeUndefined();
      expect(await attributes()).toEqual({ x: 1 });
    });

    test('that cannot be stored, or are of no workflow, are refused', async () => {
      const { operator } = await setup(dialect, []);
      const circular: Record<string, unknown> = {};
      circular['self'] = circular;
      const many = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`k${index}`, index]));

      for (const bad of [
        circular,
        [1],
        'text',
        undefined,
        null,
        { a: 'nul \0' },
        { 'k\0': 1 },
        { a: '\ud800' },
        many,
      ]) {
        await expect(
          updateWorkflowAttributes(operator, 'without', bad as Record<string, unknown>),
        ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      }
      await expect(updateWorkflowAttributes(operator, 'none', { a: 1 })).rejects.toMatchObject({
        code: 'NON_EXISTENT_WORKFLOW',
      });
      await expect(setWorkflowAttributes(operator, 'none', null)).rejects.toMatchObject({
        code: 'NON_EXISTENT_WORKFLOW',
      });
    });
  });
});
