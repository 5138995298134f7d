import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, test } from 'vitest';
import { ValueView } from '../src/parts/json-tree';

/** The text of the tree, without tags. */
function textOf(json: unknown): string {
  const markup = renderToStaticMarkup(<ValueView value={{ json, isExact: true }} label="Value" />);
  return markup.replace(/<[^>]*>/g, '').replaceAll('&quot;', '"');
}

describe('the JSON tree', () => {
  test('shows leaves with their types', () => {
    const markup = renderToStaticMarkup(
      <ValueView value={{ json: { a: 'x', b: 1, c: true, d: null }, isExact: true }} label="Value" />,
    );

    for (const type of ['string', 'number', 'boolean', 'null']) expect(markup).toContain(`json-${type}`);
  });

  test('opens two levels and folds deeper ones', () => {
    const text = textOf({ first: { second: { third: 'deep' } } });

    expect(text).toContain('second: {… 1 …}');
    expect(text).not.toContain('deep');
  });

  test('folds what has more than 100 entries, and shows empty ones at once', () => {
    expect(textOf({ list: Array.from({ length: 101 }, (_, n) => n) })).toContain('list: [… 101 …]');
    expect(textOf({ list: Array.from({ length: 100 }, (_, n) => n) })).toContain('99: 99');
    expect(textOf({ list: [], map: {} })).toMatch(/list: \[\].*map: \{\}/);
  });

  test('cuts long texts and says how long they are', () => {
    const text = textOf('x'.repeat(3000));

    expect(text).toContain('show all 2.9 KB');
    expect(text).not.toContain('x'.repeat(401));
  });

  test('escapes markup and makes hidden characters visible', () => {
    const markup = renderToStaticMarkup(
      <ValueView value={{ json: { '<b>\u202E': '<script>' }, isExact: true }} label="Value" />,
    );

    expect(markup).not.toMatch(/<b>|<script>/);
    expect(markup).toContain('\\u202e');
  });
});
