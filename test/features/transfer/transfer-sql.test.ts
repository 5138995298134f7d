import { describe, expect, test } from 'vitest';
import { readTransferred, writeTransferred } from '../../../src/features/transfer/transfer.sql.js';
import { insert, workflow } from '../listing/rows.js';
import { forEachDialect } from '../../rig/dialects.js';

describe('workflows that are put in', () => {
  forEachDialect((dialect) => {
    test('are known again by a repetition whose first answer was lost', async () => {
      const [from, to] = [await dialect.create(), await dialect.create()];
      await insert(from, [workflow('a'), workflow('b')]);
      const transferred = await readTransferred(from, ['b', 'gone', 'a']);
      const options = { isAllOrNone: true, creator: 'import-1' };

      const first = await writeTransferred(to, transferred, options);
      const again = await writeTransferred(to, transferred, options);
      const another = await writeTransferred(to, transferred, { ...options, creator: 'import-2' });

      expect(first.written.toSorted()).toEqual(['a', 'b']);
      expect(again.written.toSorted()).toEqual(['a', 'b']);
      expect(another).toEqual({ written: [], existing: ['b', 'a'], duplicated: [] });
    });
  });
});
