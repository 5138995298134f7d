// The periods of partitions: months or days, in UTC.

export type Every = 'month' | 'day';

export interface Range {
  /** Epoch milliseconds. */
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Period extends Range {
  /** What the name of the partition ends with: `2026_01`, or `2026_01_31`. */
  readonly suffix: string;
}

/** The period that contains the time. */
export function periodOf(atMs: number, every: Every): Period {
  const at = new Date(atMs);
  const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
  const isMonth = every === 'month';
  return {
    fromMs: isMonth ? Date.UTC(year, month) : Date.UTC(year, month, day),
    toMs: isMonth ? Date.UTC(year, month + 1) : Date.UTC(year, month, day + 1),
    suffix: at
      .toISOString()
      .slice(0, isMonth ? 7 : 10)
      .replaceAll('-', '_'),
  };
}

/** The period of the time, and those that follow. */
export function periodsFrom(atMs: number, every: Every, ahead: number): Period[] {
  const periods = [periodOf(atMs, every)];
  while (periods.length <= ahead) periods.push(periodOf((periods.at(-1) as Period).toMs, every));
  return periods;
}

/** The parts of a range that none of the others covers. */
export function uncovered({ fromMs, toMs }: Range, others: readonly Range[]): Range[] {
  const parts: Range[] = [];
  let at = fromMs;
  for (const other of [...others].sort((a, b) => a.fromMs - b.fromMs)) {
    if (other.toMs <= at || other.fromMs >= toMs) continue;
    if (other.fromMs > at) parts.push({ fromMs: at, toMs: other.fromMs });
    at = Math.max(at, other.toMs);
  }
  if (at < toMs) parts.push({ fromMs: at, toMs });
  return parts;
}

/** The time some months earlier. A day that the month does not have becomes its last. */
export function monthsBefore(atMs: number, months: number): number {
  const at = new Date(atMs);
  const first = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - months));
  const last = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  return first.getTime() + (Math.min(at.getUTCDate(), last) - 1) * 86_400_000 + (atMs % 86_400_000);
}
