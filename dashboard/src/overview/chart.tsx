// A chart over time, drawn by uPlot in the colours of the page. The same figures are in a table for screen readers.
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

export interface Series {
  readonly label: string;
  /** A token, such as `--done-bar`. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
  readonly isFilled?: boolean;
}

interface ChartProps {
  readonly title: string;
  /** Epoch milliseconds. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
}

const HEIGHT = 132;

export function Chart({ title, times, series, format }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef({ times, series, format });
  useEffect(() => {
    latest.current = { times, series, format };
    plot.current?.setData(dataOf(times, series));
  });
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const draw = (): void => {
      plot.current?.destroy();
      const { times: x, series: lines, format: text } = latest.current;
      plot.current = new uPlot(optionsOf(element, lines, text), dataOf(x, lines), element);
    };
    draw();
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resize.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    window.addEventListener('everstep-theme', draw);
    return () => {
      resize.disconnect();
      scheme.removeEventListener('change', draw);
      window.removeEventListener('everstep-theme', draw);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  return (
    <figure className="card chart">
      <figcaption>
        <h2>{title}</h2>
        <span className="chart-legend">
          {series.map(({ label, colour, values }) => (
            <span key={label}>
              <i style={{ background: `var(${colour})` }} />
              {label} <b>{lastOf(values, format)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={box} className="chart-plot" role="img" aria-label={`${title}, over time`} />
    </figure>
  );
}

function lastOf(values: readonly (number | null)[], format: (value: number) => string): string {
  const value = values.findLast((one) => one !== null);
  return value === null || value === undefined ? '–' : format(value);
}

function dataOf(times: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  return [times.map((at) => at / 1000), ...series.map(({ values }) => [...values])];
}

function clockOf(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

/** What a token is at present: a canvas does not read custom properties. */
function resolved(token: string, element: HTMLElement): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function optionsOf(element: HTMLElement, series: readonly Series[], format: (value: number) => string): uPlot.Options {
  const soft = resolved('--text-soft', element);
  const grid = { stroke: resolved('--line', element), width: 1 };
  const font = '11px system-ui, sans-serif';
  return {
    width: Math.max(120, element.clientWidth),
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] } },
    axes: [
      {
        stroke: soft,
        grid: { show: false },
        ticks: { show: false },
        font,
        size: 24,
        space: 60,
        values: (_plot, ticks) => ticks.map(clockOf),
      },
      {
        stroke: soft,
        grid,
        ticks: { show: false },
        font,
        size: 52,
        space: 34,
        values: (_plot, ticks) => ticks.map((tick) => format(tick)),
      },
    ],
    series: [
      {},
      ...series.map(({ label, colour, isFilled }) => ({
        label,
        stroke: resolved(colour, element),
        width: 1.5,
        points: { size: 5 },
        spanGaps: true,
        ...(isFilled && { fill: resolved(colour, element).replace(/^rgb\((.*)\)$/, 'rgba($1, 0.15)') }),
      })),
    ],
  };
}
