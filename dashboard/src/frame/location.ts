// The query of the URL, written the plain way: `status=ERROR&status=PENDING`, as the HTTP interface reads it.
type Search = Record<string, string | string[]>;

export function parseSearch(text: string): Search {
  const parameters = new URLSearchParams(text);
  const found: Search = {};
  for (const key of new Set(parameters.keys())) {
    const values = parameters.getAll(key);
    found[key] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return found;
}

export function stringifySearch(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(search)) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (typeof one === 'string' || typeof one === 'number' || one === true) parameters.append(key, String(one));
    }
  }
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}
