// The part of the time that the timeline shows, and how zooming and panning change it.
export interface View {
  readonly from: number;
  readonly to: number;
}

const MIN_SPAN_MS = 2;

/** Zooms by a factor around a point, which stays where it is. Never beyond the whole. */
export function zoom(view: View, whole: View, factor: number, center = (view.from + view.to) / 2): View {
  const span = Math.max(MIN_SPAN_MS, (view.to - view.from) * factor);
  if (span >= whole.to - whole.from) return whole;
  const share = (center - view.from) / (view.to - view.from);
  return clamp({ from: center - span * share, to: center + span * (1 - share) }, whole);
}

export function pan(view: View, whole: View, byMs: number): View {
  return clamp({ from: view.from + byMs, to: view.to + byMs }, whole);
}

function clamp(view: View, whole: View): View {
  const span = view.to - view.from;
  const from = Math.min(Math.max(view.from, whole.from), whole.to - span);
  return { from, to: from + span };
}

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];

/** Round times for the axis, counted from the start of the whole. */
export function ticksOf(view: View, origin: number, count: number): number[] {
  const span = view.to - view.from;
  const wanted = span / Math.max(1, count);
  const day = 86_400_000;
  const step = STEPS_MS.find((one) => one >= wanted) ?? Math.ceil(wanted / day) * day;
  const first = Math.ceil((view.from - origin) / step) * step;
  const found: number[] = [];
  for (let at = first; origin + at <= view.to && found.length < 100; at += step) found.push(at);
  return found;
}

/** Where a time is, in percent of the view. */
export function percentOf(at: number, { from, to }: View): number {
  return ((at - from) / Math.max(1, to - from)) * 100;
}
