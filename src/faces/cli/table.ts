// Tables and field lists, aligned and fitted to the terminal's width.
import { type Colour, sanitize, paint, type RenderContext } from './render-context.js';

export interface Column<Row> {
  readonly title: string;
  readonly isRight?: boolean;
  /** On a narrow terminal the highest rank is dropped first. Columns without a rank are never dropped. */
  readonly rank?: number;
  /** May be truncated before other columns are dropped. */
  readonly isShortenable?: boolean;
  text(row: Row): string | number | null | undefined;
  colour?(row: Row): Colour | undefined;
}

const GAP = '  ';
const SHORTENED_MIN = 10;

/** The rows under their titles. Columns that are empty in all rows are omitted. */
export function formatTable<Row>(
  rendering: RenderContext,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): string {
  const cells = new Map(columns.map((column) => [column, rows.map((row) => cellText(column, row))]));
  const filled = columns.filter((column) => cells.get(column)?.some((cell) => cell !== ''));
  const natural = new Map(
    filled.map((column) => [column, Math.max(...[column.title, ...(cells.get(column) ?? [])].map(textWidth))]),
  );
  const widths = fit(filled, natural, rendering.width);
  const shown = [...widths.keys()];
  const line = (write: (column: Column<Row>, width: number) => string): string =>
    shown
      .map((column) => write(column, widths.get(column) ?? 0))
      .join(GAP)
      .trimEnd();
  const title = line((column, width) => paint(rendering, 'grey', align(column.title, width, column.isRight)));
  const body = rows.map((row, index) =>
    line((column, width) =>
      paint(rendering, column.colour?.(row), align(cells.get(column)?.[index] ?? '', width, column.isRight)),
    ),
  );
  return [title, ...body].join('\n');
}

function cellText<Row>(column: Column<Row>, row: Row): string {
  return sanitize(String(column.text(row) ?? ''));
}

/** The columns that fit, with their widths. Ranked ones are dropped only if truncating is not enough. */
function fit<Row>(
  columns: readonly Column<Row>[],
  natural: ReadonlyMap<Column<Row>, number>,
  available: number,
): Map<Column<Row>, number> {
  let widths = new Map(columns.map((column) => [column, natural.get(column) ?? 0]));
  const byRank = columns.filter(({ rank }) => rank !== undefined).sort((a, b) => (b.rank ?? 0) - (a.rank ?? 0));
  for (;;) {
    const minimal = [...widths].map(([column, width]) =>
      column.isShortenable ? Math.min(width, SHORTENED_MIN) : width,
    );
    const leftOut = minimal.reduce((sum, width) => sum + width + GAP.length, -GAP.length) > available && byRank.shift();
    if (!leftOut) break;
    widths = new Map([...widths].filter(([column]) => column !== leftOut));
  }
  shrink(widths, available, (column) => column.isShortenable === true);
  shrink(widths, available, () => true);
  return widths;
}

/** Narrows the widest shrinkable column until all fit or none can shrink further. */
function shrink<Row>(
  widths: Map<Column<Row>, number>,
  available: number,
  mayShrink: (column: Column<Row>) => boolean,
): void {
  const total = (): number => [...widths.values()].reduce((sum, width) => sum + width + GAP.length, -GAP.length);
  while (total() > available) {
    const [widest] = [...widths]
      .filter(([column, width]) => mayShrink(column) && width > SHORTENED_MIN)
      .sort(([, a], [, b]) => b - a);
    if (!widest) return;
    widths.set(widest[0], widest[1] - 1);
  }
}

function align(text: string, width: number, isRight = false): string {
  const shortened = shorten(text, width);
  const padding = ' '.repeat(Math.max(0, width - textWidth(shortened)));
  return isRight ? padding + shortened : shortened + padding;
}

/** Truncates the text to a width, with an ellipsis. */
export function shorten(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let cut = '';
  let used = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > width - 1) break;
    cut += character;
  }
  return `${cut}…`;
}

export function textWidth(text: string): number {
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

function characterWidth(character: string): number {
  if (/\p{M}|\p{Cf}/u.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** One name and value a line. Entries without a value are omitted. */
export function formatFields(
  rendering: RenderContext,
  fields: readonly (readonly [name: string, value: string | number | null | undefined, colour?: Colour])[],
): string {
  const present = fields.filter(([, value]) => value !== undefined && value !== null && value !== '');
  const width = Math.max(0, ...present.map(([name]) => textWidth(name)));
  return present
    .map(([name, value, colour]) => {
      const [first = '', ...more] = String(value).split('\n');
      const rest = more.map((line) => `\n${' '.repeat(width + GAP.length)}${line}`).join('');
      return `${paint(rendering, 'grey', name.padEnd(width))}${GAP}${paint(rendering, colour, first)}${rest}`;
    })
    .join('\n');
}

/** Wraps the text at word boundaries. */
export function wrap(text: string, width: number): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const line = lines.at(-1);
    if (line === undefined || textWidth(line) + 1 + textWidth(word) > width) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines.join('\n');
}

/** `1 workflow`, `12,000 workflows`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
