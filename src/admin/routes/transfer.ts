// Routes that take workflows out of the database and put them into it. Both are streams: any number of workflows passes
// through with few in memory.
import { toLines } from '../../control/management/export-format.js';
import { exportWorkflows, importWorkflows } from '../../control/management/transfer.js';
import { streamAnswer } from '../http/answer.js';
import { piecesOf, requireType } from '../http/body.js';
import { type Route, route } from '../http/route.js';
import { boolean, integer, oneOf, optional, record } from '../../model/validation/validation.js';
import { filters, toFilters } from './listing.js';

const tag = 'Many workflows';
const LINES = 'application/x-ndjson';
/** It is not held in memory, but an answer has to come at some time. */
const IMPORT_MAX_BYTES = 1_073_741_824;

export const TRANSFER_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/export',
    tag,
    summary: 'The workflows that match, whole, one a line, in the order of their creation.',
    query: {
      ...filters,
      exportChildren: optional(boolean.about('Takes all workflows along that they have started, and so on.')),
      limit: optional(integer({ min: 1 })),
    },
    mediaType: LINES,
    async handle({ operator, query: { exportChildren, limit, ...rest } }) {
      const lines = toLines(exportWorkflows(operator, { ...toFilters(rest), exportChildren, limit }));
      // What is wrong with the query shows at the first line, while it can still be told.
      const first = await lines.next();
      return streamAnswer(toStream(first, lines), LINES);
    },
  }),
  route({
    method: 'POST',
    path: '/import',
    tag,
    summary:
      'Puts exported workflows in, each whole or not at all. Those that have not ended are held back as cancelled.',
    query: {
      onConflict: optional(
        oneOf(['fail', 'skip']).about('Where an ID is in use: stop, or leave the one that is there.'),
      ),
      activeWorkflows: optional(oneOf(['cancel', 'enqueue']).about('What becomes of those that have not ended.')),
    },
    bodyType: LINES,
    result: record({ imported: integer(), skipped: integer() }),
    async handle({ operator, request, query }) {
      requireType(request, LINES, 'application/json');
      return importWorkflows(operator, piecesOf(request, IMPORT_MAX_BYTES), query);
    },
  }),
];

/** A stream that asks for a line when there is room for it. */
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
