// The rows of docs/reference/http.md, as the table of routes has them.
import type { Route } from '../../../src/faces/http/http/route.js';
import { filters } from '../../../src/features/listing/listing.http.js';

/** The filters of workflows, which the page describes once. */
export const FILTERS = Object.keys(filters);

export function rowOf({ method, path, query, body, bodyType, status, result, mediaType, summary }: Route): string {
  const properties = Object.keys(body?.schema['properties'] ?? {});
  const required = (body?.schema['required'] ?? []) as string[];
  const fields = [
    ...Object.entries(query).map(([name, { isOptional }]) => ({ name, isOptional })),
    ...properties.map((name) => ({ name, isOptional: !required.includes(name) })),
  ];
  const hasFilters = fields.some(({ name }) => name === 'dequeuedAfter');
  const shown = fields.filter(({ name }) => !hasFilters || !FILTERS.includes(name));
  const given = [
    ...(hasFilters ? ['[filters](#filters)'] : []),
    ...shown.map(({ name, isOptional }) => `\`${name}${isOptional ? '?' : ''}\``),
    ...(bodyType === undefined ? [] : [bodyType]),
  ];
  const inner = Object.keys(result?.schema['properties'] ?? {});
  const answer = mediaType ?? result?.name ?? (inner.length > 0 ? `{ ${inner.join(', ')} }` : result ? 'JSON' : '');
  return `| \`${method} ${path}\` | ${given.join(', ')} | ${status}${answer ? ` \`${answer}\`` : ''} | ${summary} |`;
}
