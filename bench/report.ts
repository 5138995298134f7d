// Tables for people, and the few statistics the benchmarks need.

export interface Measurement {
  readonly label: string;
  readonly value: string;
  readonly ratio?: string;
}

const isTerminal = process.stdout.isTTY && !process.env['NO_COLOR'];
const bold = (text: string): string => (isTerminal ? `\u001b[1m${text}\u001b[0m` : text);

export function printTable(title: string, lines: readonly Measurement[]): void {
  const width = Math.max(...lines.map((line) => line.label.length));
  console.log(`\n${bold(title)}`);
  for (const { label, value, ratio } of lines)
    console.log(`  ${label.padEnd(width)}  ${value.padStart(14)}  ${ratio ?? ''}`);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

/** Runs `body` and returns how long it took, in milliseconds. */
export async function timed(body: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await body();
  return performance.now() - startedAt;
}

export function perSecond(count: number, elapsedMs: number): string {
  return `${Math.round((count / elapsedMs) * 1000).toLocaleString('en')}/s`;
}

export function times(factor: number): string {
  return `${factor.toFixed(factor < 10 ? 2 : 1)}×`;
}
