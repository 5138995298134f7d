// A line that shows how far long work has got. On a terminal it is overwritten, and has a bar and the time left if the total
// is known. Elsewhere it is a plain line now and then.
import type { Terminal } from '../terminal.js';
import { formatDuration } from '../time.js';

/** In any unit. */
export interface Share {
  readonly done: number;
  readonly total: number;
}

const BAR_WIDTH = 24;
const TERMINAL_MS = 100;
const PLAIN_MS = 5000;

export class ProgressLine {
  readonly #terminal: Terminal;
  readonly #now: () => number;
  readonly #startedAt: number;
  #shownAt: number;
  #isOpen = false;

  constructor(terminal: Terminal, now: () => number) {
    this.#terminal = terminal;
    this.#now = now;
    this.#startedAt = now();
    // Short work shows no progress.
    this.#shownAt = this.#startedAt;
  }

  /** Shows the text, rate limited. */
  show(text: string, share?: Share): void {
    const now = this.#now();
    if (now - this.#shownAt < (this.#terminal.isOverwritable ? TERMINAL_MS : PLAIN_MS)) return;
    this.#shownAt = now;
    if (this.#terminal.isOverwritable) {
      const shown = share && share.total > 0 ? withBar(text, share, now - this.#startedAt) : text;
      this.#terminal.printStderr(`\r\u001b[K${shown}`);
    } else this.#terminal.printStderr(`${text}\n`);
    this.#isOpen = this.#terminal.isOverwritable;
  }

  /** Clears the line. */
  done(): void {
    if (this.#isOpen) this.#terminal.printStderr('\r\u001b[K');
    this.#isOpen = false;
  }
}

/** `████████░░░░░░░░░░░░░░░░  33 %  1,000 workflows exported, 12 s left`. The total is an estimate: more may have come. */
function withBar(text: string, { done, total }: Share, elapsedMs: number): string {
  const part = Math.min(1, done / total);
  const filled = Math.floor(part * BAR_WIDTH);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  const percent = `${Math.floor(part * 100)} %`.padStart(5);
  return `${bar} ${percent}  ${text}${part > 0 && part < 1 ? `, ${timeLeft(part, elapsedMs)} left` : ''}`;
}

function timeLeft(part: number, elapsedMs: number): string {
  const leftMs = (elapsedMs / part) * (1 - part);
  return formatDuration(Math.ceil(leftMs / 1000) * 1000);
}
