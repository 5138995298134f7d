// Prometheus text format.

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Gauges with help and type. Metrics without samples are omitted. */
export function exposition(metrics: readonly Metric[]): string {
  return metrics
    .filter(({ samples }) => samples.length > 0)
    .map(
      ({ name, help, samples }) =>
        `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} gauge\n` +
        samples.map(({ labels = {}, value }) => `${name}${labelText(labels)} ${numberText(value)}\n`).join(''),
    )
    .join('');
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
