// Draws the orders: one line each, a cell per step. A terminal is redrawn in place; elsewhere each change is printed as a
// line of its own.
import { type Entry, effectsOf, type Order, ORDERS, RECEIPT, SLEEP } from './orders.js';

const { stdout, env } = process;
const MIN_COLUMNS = 80;
const CHROME_LINES = 5;
const SPINNER = ['|', '/', '-', '\\'];
const FRAME_MS = 120;

const isTerminal =
  stdout.isTTY &&
  env['TERM'] !== 'dumb' &&
  (stdout.columns ?? 0) >= MIN_COLUMNS &&
  (stdout.rows ?? 0) > ORDERS.length + CHROME_LINES;
const hasColour = stdout.isTTY && env['TERM'] !== 'dumb' && !env['NO_COLOR'];

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export function paint(colour: keyof typeof COLOURS, text: string): string {
  return hasColour ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text;
}

/** What the log says about one effect. */
export interface Progress {
  /** The processes that started it, in order. */
  readonly begunBy: readonly number[];
  readonly endedBy: number | undefined;
}

export function progressOf(entries: readonly Entry[], order: Order, effect: string): Progress {
  const mine = entries.filter((entry) => entry.order === order.id && entry.effect === effect);
  return {
    begunBy: mine.filter((entry) => entry.event === 'begin').map((entry) => entry.process),
    endedBy: mine.findLast((entry) => entry.event === 'end')?.process,
  };
}

export class Board {
  /** The process running now; undefined if there is none. */
  running: number | undefined;
  #status = '';
  #isDrawn = false;
  readonly #lastLines = new Map<string, string>();

  say(status: string): void {
    this.#status = status;
    if (!isTerminal) console.log(`  ${status}`);
  }

  draw(entries: readonly Entry[]): void {
    if (isTerminal) this.#redraw(entries);
    else this.#drawChanges(entries);
  }

  /** Restores the terminal. */
  close(): void {
    if (isTerminal && this.#isDrawn) stdout.write('\u001b[?25h');
    this.#isDrawn = false;
  }

  #redraw(entries: readonly Entry[]): void {
    const lines = [
      HEADER,
      ...ORDERS.map((order) => this.#line(entries, order)),
      '',
      `  ${LEGEND}`,
      `  ${paint('bold', this.#status)}`,
    ];
    const start = this.#isDrawn ? `\u001b[${lines.length}A` : '\u001b[?25l';
    this.#isDrawn = true;
    stdout.write(start + lines.map((line) => `\u001b[2K${line}\n`).join(''));
  }

  #drawChanges(entries: readonly Entry[]): void {
    if (!this.#isDrawn) console.log(`  ${LEGEND}\n${HEADER}`);
    this.#isDrawn = true;
    for (const order of ORDERS) {
      const line = this.#line(entries, order).trimEnd();
      const isNews = entries.some((entry) => entry.order === order.id) && this.#lastLines.get(order.id) !== line;
      if (isNews) console.log(line);
      this.#lastLines.set(order.id, line);
    }
  }

  #line(entries: readonly Entry[], order: Order): string {
    const of = (effect: string): Progress => progressOf(entries, order, effect);
    const parcels = effectsOf(order).slice(2, -1);
    const cells = [
      `  ${order.id.padEnd(10)}`,
      `${this.#cell(of('reserve'))}     `,
      `${this.#cell(of('charge'))}    `,
      `${sleepCell(of('charge'), of(parcels[0] ?? ''))}   `,
      parcels.map((parcel) => this.#cell(of(parcel))).join(''),
      ' '.repeat(4 * (PARCELS_MAX - parcels.length) + 2),
      `${this.#cell(of(RECEIPT))}    `,
      of(RECEIPT).endedBy === undefined ? '' : paint('green', 'done'),
    ];
    return cells.join('');
  }

  /** Four characters. */
  #cell({ begunBy, endedBy }: Progress): string {
    const last = begunBy.at(-1);
    if (last === undefined) return paint('dim', ' .  ');
    if (endedBy === last) {
      const again = begunBy.length > 1 ? '*' : ' ';
      return paint(last === 1 ? 'cyan' : 'green', `[${last}]${again}`);
    }
    if (last === this.running) return paint('yellow', ` ${spinner()}  `);
    return paint('red', ' X  ');
  }
}

function spinner(): string {
  if (!isTerminal) return '~';
  return SPINNER[Math.floor(Date.now() / FRAME_MS) % SPINNER.length] ?? '~';
}

/** The sleep writes no log entry, so it is drawn from the steps around it: the charge and the first parcel. */
function sleepCell(charge: Progress, parcel: Progress): string {
  if (parcel.begunBy.length > 0) return paint('cyan', '[z] ');
  return charge.endedBy === undefined ? paint('dim', ' .  ') : paint('yellow', ' z  ');
}

const PARCELS_MAX = Math.max(...ORDERS.map((order) => order.parcels));
const HEADER = paint('dim', `  order     reserve  charge  ${SLEEP}  parcels       receipt`);
const LEGEND =
  `${paint('cyan', '[1]')} run by process 1   ${paint('green', '[2]')} by process 2   ` +
  `${paint('red', 'X')} interrupted   * run again`;
