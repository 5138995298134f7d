// What the URL of the retention page holds: the archived workflow that is looked at.
export interface RetentionSearch {
  readonly archived?: string;
}

export function readRetentionSearch({ archived }: Record<string, unknown>): RetentionSearch {
  return typeof archived === 'string' && archived !== '' ? { archived } : {};
}
