// What the URL of the overview holds: the span of its charts.
export interface OverviewSearch {
  readonly window?: '24h';
}

export function readOverviewSearch(search: Record<string, unknown>): OverviewSearch {
  return search['window'] === '24h' ? { window: '24h' } : {};
}
