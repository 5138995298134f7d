// The engines of the comparison, and how a figure is put beside those of the others.
import { type Measurement, times } from '../report.js';
import type { Engine } from './workers.js';

export const ENGINES: readonly Engine[] = ['everstep', 'dbos-5', 'dbos-4'];
const NAMES: Readonly<Record<Engine, string>> = {
  everstep: 'Everstep',
  'dbos-5': 'DBOS 5.3.0',
  'dbos-4': 'DBOS 4.27.6',
};

/** A figure of each engine. Peers that were not measured are left out. */
export type Figures = Readonly<{ everstep: number } & Partial<Record<Engine, number>>>;

export interface Comparison {
  readonly label: string;
  readonly figures: Figures;
  /** Whether more is better; the ratio says how many times better Everstep is. */
  readonly isMoreBetter: boolean;
  readonly format: (figure: number) => string;
}

/** A line for each engine; Everstep's has the ratios. */
export function compare({ label, figures, isMoreBetter, format }: Comparison): Measurement[] {
  const peers = ENGINES.filter((engine) => engine !== 'everstep' && figures[engine] !== undefined);
  const ratios = peers.map((peer) => {
    const other = figures[peer] ?? NaN;
    return `${times(isMoreBetter ? figures.everstep / other : other / figures.everstep)} ${NAMES[peer]}`;
  });
  return [
    { label: `${label}: ${NAMES.everstep}`, value: format(figures.everstep), ratio: ratios.join(', ') },
    ...peers.map((peer) => ({ label: `${label}: ${NAMES[peer]}`, value: format(figures[peer] ?? NaN) })),
  ];
}

/** Measures one engine after the other. */
export async function measureEach<Answer>(
  measure: (engine: Engine) => Promise<Answer>,
): Promise<Record<Engine, Answer>> {
  return {
    everstep: await measure('everstep'),
    'dbos-5': await measure('dbos-5'),
    'dbos-4': await measure('dbos-4'),
  };
}

/** One number of each answer. */
export function pick<Answer>(answers: Record<Engine, Answer>, figure: (answer: Answer) => number) {
  return {
    everstep: figure(answers.everstep),
    'dbos-5': figure(answers['dbos-5']),
    'dbos-4': figure(answers['dbos-4']),
  };
}
