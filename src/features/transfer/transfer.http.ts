// Routes that export and import workflows. Both stream, so that memory does not grow with the number of workflows.
import { getArchivedWorkflow } from '../retention/archive.js';
import { notFound } from '../../faces/http/http/refusal.js';
import { toLines } from './export-format.js';
import { exportWorkflows, importWorkflows } from './transfer.js';
import { streamResponse } from '../../faces/http/http/response.js';
import { chunksOf, requireType } from '../../faces/http/http/body.js';
import { type Route, route } from '../../faces/http/http/route.js';
import { boolean, integer, jsonObject, oneOf, optional, record } from '../../kernel/check/validation.js';
import { filters, toFilters } from '../listing/listing.http.js';

const tag = 'Many workflows';
const LINES = 'application/x-ndjson';
/** Imports are streamed, but a request must end eventually. */
const IMPORT_MAX_BYTES = 1_073_741_824;

export const TRANSFER_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/export',
    tag,
    summary: 'Exports matching workflows with all their data as JSON lines, in creation order.',
    query: {
      ...filters,
      exportChildren: optional(boolean.about('Includes their descendants.')),
      limit: optional(integer({ min: 1 })),
    },
    mediaType: LINES,
    async handle({ operator, query: { exportChildren, limit, ...rest } }) {
      const lines = toLines(exportWorkflows(operator, { ...toFilters(rest), exportChildren, limit }));
      // Read the first line before responding: an invalid query can then still be refused.
      const first = await lines.next();
      return streamResponse(toStream(first, lines), LINES);
    },
  }),
  route({
    method: 'GET',
    path: '/archived-workflows/{workflowID}',
    tag,
    summary: 'Returns a workflow that retention has archived, as exports have it.',
    result: jsonObject,
    async handle({ operator, path }) {
      const workflowID = path['workflowID'] ?? '';
      const exported = await getArchivedWorkflow(operator, workflowID);
      if (!exported) throw notFound(`There is no archived workflow "${workflowID}".`);
      return exported;
    },
  }),
  route({
    method: 'POST',
    path: '/import',
    tag,
    summary:
      'Imports exported workflows, each completely or not at all. Active ones are imported as cancelled by default.',
    query: {
      onConflict: optional(oneOf(['fail', 'skip']).about('If an ID exists: stop, or keep the existing workflow.')),
      activeWorkflows: optional(oneOf(['cancel', 'enqueue']).about('What to do with workflows that had not ended.')),
    },
    bodyType: LINES,
    result: record({ imported: integer(), skipped: integer() }),
    async handle({ operator, request, query }) {
      requireType(request, LINES, 'application/json');
      return importWorkflows(operator, chunksOf(request, IMPORT_MAX_BYTES), query);
    },
  }),
];

/** A stream that pulls lines on demand. */
function toStream(
  first: IteratorResult<string, void>,
  lines: AsyncGenerator<string, void, undefined>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let next = Promise.resolve(first);
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await next;
      if (done) return controller.close();
      controller.enqueue(encoder.encode(value));
      next = lines.next();
      // Awaited at the next pull, which may never come.
      next.catch(() => {});
    },
    async cancel() {
      await lines.return();
    },
  });
}
