import { describe, expect, test } from 'vitest';
import { parseSearch, stringifySearch } from '../src/frame/location';
import {
  chipsOf,
  FILTERS,
  type ListSearch,
  readListSearch,
  toQuery,
  withFilter,
  withoutFilter,
} from '../src/workflows/filters';

const NOW = Date.UTC(2026, 0, 5, 12);

function filterOf(key: string) {
  const found = FILTERS.find((filter) => filter.key === key);
  if (!found) throw new Error(`No filter ${key}`);
  return found;
}

/** What a reload of the page makes of a search. */
function reloaded(search: ListSearch): ListSearch {
  return readListSearch(parseSearch(stringifySearch(search)));
}

describe('filters of the list', () => {
  test.each<ListSearch>([
    {},
    { status: 'ERROR' },
    { status: ['ERROR', 'PENDING'], workflowName: ['charge', 'a&b=c'] },
    { workflowIDPrefix: 'order-17 ü+%', last: '1h', order: 'oldest' },
    { hasParent: 'true', attributes: '{"customer": "c-17"}', startTime: '2026-01-05T10:00:00.000Z' },
  ])('survive the URL: %j', (search) => {
    expect(reloaded(search)).toEqual(search);
  });

  test('leave out what makes no sense', () => {
    const text = '?status=NONSENSE&status=ERROR&last=soon&order=random&workflowName=&other=1&last=1h';

    expect(readListSearch(parseSearch(text))).toEqual({ status: 'ERROR' });
  });

  test('become the query of the API', () => {
    const search = {
      status: 'ERROR',
      workflowName: 'charge',
      hasParent: 'false',
      last: '1h',
      order: 'oldest',
    } as const;

    expect(toQuery(search, NOW)).toEqual({
      status: ['ERROR'],
      workflowName: ['charge'],
      hasParent: false,
      startTime: '2026-01-05T11:00:00.000Z',
      sortDesc: false,
    });
  });

  test('prefer a start to a span', () => {
    const startTime = '2026-01-01T00:00:00.000Z';

    expect(toQuery({ last: '1h', startTime }, NOW)).toEqual({ startTime });
  });

  test('are added once and removed one by one', () => {
    const name = filterOf('workflowName');
    const two = withFilter(withFilter(withFilter({}, name, 'a'), name, 'b'), name, 'a');
    const one = withoutFilter(two, name, 'b');
    const started = filterOf('startTime');

    expect(chipsOf(two).map(({ value }) => value)).toEqual(['b', 'a']);
    expect(chipsOf(one).map(({ value }) => value)).toEqual(['a']);
    expect(reloaded(withoutFilter(one, name, 'a'))).toEqual({});
    // One moment replaces another.
    expect(withFilter(withFilter({}, started, 'x'), started, 'y')).toEqual({ startTime: 'y' });
  });
});
