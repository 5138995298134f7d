import { expect, test } from 'vitest';
import { PAGE_BYTES, TextPages } from '../../../src/run/history/text-pages.js';
import { step } from '../../rig/records.js';

/** Records of a quarter of a page each, and which of them were read together. */
function setup({ existing }: { readonly existing: readonly number[] }) {
  const reads: (readonly number[])[] = [];
  const outlines = [0, 1, 2, 3, 4, 5].map((stepID) => ({ step: step('w', stepID), bytes: PAGE_BYTES / 4 }));
  const pages = new TextPages(async (stepIDs) => {
    reads.push(stepIDs);
    return stepIDs.filter((stepID) => existing.includes(stepID)).map((stepID) => step('w', stepID));
  });
  pages.add(outlines);
  return { pages, reads };
}

test('each page is read once, when the replay comes to it', async () => {
  const { pages, reads } = setup({ existing: [0, 1, 2, 3, 4, 5] });
  const all = await Promise.all([0, 1, 2, 3, 4, 5].map((stepID) => pages.take(stepID)));
  expect(all.map((record) => record?.stepID)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(reads).toEqual([
    [0, 1, 2, 3],
    [4, 5],
  ]);
});

test('a record that was deleted meanwhile is undefined', async () => {
  const { pages } = setup({ existing: [1] });
  expect(await pages.take(0)).toBeUndefined();
  expect(await pages.take(1)).toMatchObject({ stepID: 1 });
});
