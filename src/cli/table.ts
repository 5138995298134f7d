// Tables and lists for people: aligned, and no wider than the terminal.
import { type Colour, harmless, paint, type Paper } from './paper.js';

export interface Column<Row> {
  readonly title: string;
  readonly isRight?: boolean;
  /** Left out of a narrow terminal, the highest first. Without one the column stays. */
  readonly rank?: number;
  /** May be shortened before others are left out. */
  readonly isShortenable?: boolean;
  text(row: Row): string | number | null | undefined;
  colour?(row: Row): Colour | undefined;
}

const GAP = '  ';
const SHORTENED_MIN = 10;

/** The rows under their titles. Columns that are empty in all rows are left out. */
export function formatTable<Row>(paper: Paper, columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = new Map(columns.map((column) => [column, rows.map((row) => cellText(column, row))]));
  const filled = columns.filter((column) => cells.get(column)?.some((cell) => cell !== ''));
  const natural = new Map(
    filled.map((column) => [column, Math.max(...[column.title, ...(cells.get(column) ?? [])].map(textWidth))]),
  );
  const widths = fit(filled, natural, paper.width);
  const shown = [...widths.keys()];
  const line = (write: (column: Column<Row>, width: number) => string): string =>
    shown
      .map((column) => write(column, widths.get(column) ?? 0))
      .join(GAP)
      .trimEnd();
  const title = line((column, width) => paint(paper, 'grey', align(column.title, width, column.isRight)));
  const body = rows.map((row, index) =>
    line((column, width) =>
      paint(paper, column.colour?.(row), align(cells.get(column)?.[index] ?? '', width, column.isRight)),
    ),
  );
  return [title, ...body].join('\n');
}

function cellText<Row>(column: Column<Row>, row: Row): string {
  return harmless(String(column.text(row) ?? ''));
}

/** The columns that fit, with their widths: some are shortened, then some are left out, then all must give. */
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

/** Takes from the widest of the columns that may be shortened until all fit, or none is left to take from. */
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

/** The text cut to a width, with a mark where something is missing. */
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

/** Names and values below each other. Entries without a value are left out. */
export function formatFields(
  paper: Paper,
  fields: readonly (readonly [name: string, value: string | number | null | undefined, colour?: Colour])[],
): string {
  const present = fields.filter(([, value]) => value !== undefined && value !== null && value !== '');
  const width = Math.max(0, ...present.map(([name]) => textWidth(name)));
  return present
    .map(([name, value, colour]) => {
      const [first = '', ...more] = String(value).split('\n');
      const rest = more.map((line) => `\n${' '.repeat(width + GAP.length)}${line}`).join('');
      return `${paint(paper, 'grey', name.padEnd(width))}${GAP}${paint(paper, colour, first)}${rest}`;
    })
    .join('\n');
}

/** The text in lines of no more than a width, broken between words. */
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
