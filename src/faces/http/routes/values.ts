// Downloads of single values. Other routes return excerpts of large ones.
import { getAllEvents, getWorkflow } from '../../../features/listing/inspection.js';
import { listWorkflowSteps } from '../../../features/listing/steps.js';
import { anything, integer, INT_MAX, oneOf, optional } from '../../../kernel/check/validation.js';
import { invalid, notFound, Refusal } from '../http/refusal.js';
import { jsonResponse } from '../http/response.js';
import { type Call, type Route, route } from '../http/route.js';
import { nonEmpty } from '../shape.js';
import { wholeJSON } from '../views/value.js';
import { idIn, requireWorkflow, workflowMissing } from '../../../features/listing/workflows.http.js';

const query = {
  of: oneOf(['input', 'output', 'error', 'event']),
  step: optional(integer({ max: INT_MAX }).about('The number of a step, for its output or error.')),
  key: optional(nonEmpty.about('The key of an event.')),
};

type Wanted = Readonly<{ of: string; step?: number | undefined; key?: string | undefined }>;

export const VALUE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/workflows/{workflowID}/value',
    tag: 'Workflows',
    summary: 'Downloads a whole value, which other routes shorten if it is large.',
    query,
    result: anything,
    async handle({ operator, path, query: wanted }) {
      const value = wholeJSON(await find({ operator, path }, wanted));
      if (!value) {
        throw new Refusal(
          413,
          'VALUE_TOO_LARGE',
          'The value is too large for this route. Export the workflow instead.',
        );
      }
      // Never shown by a browser, whatever is in it.
      return jsonResponse(value.json, 200, { 'content-disposition': `attachment; filename="${wanted.of}.json"` });
    },
  }),
];

async function find({ operator, path }: Pick<Call, 'operator' | 'path'>, { of, step, key }: Wanted): Promise<unknown> {
  const workflowID = idIn(path);
  if (of === 'event') {
    if (key === undefined) throw invalid('key is missing.');
    await requireWorkflow(operator, workflowID);
    const events = new Map(Object.entries(await getAllEvents(operator, workflowID)));
    if (!events.has(key)) throw notFound(`Event ${JSON.stringify(key)} not found.`);
    return events.get(key);
  }
  if (step !== undefined) {
    if (of === 'input') throw invalid('A step has no input. Pass of=output or of=error.');
    const steps = await listWorkflowSteps(operator, workflowID);
    if (!steps) throw workflowMissing(workflowID);
    const found = steps.find(({ functionID }) => functionID === step);
    if (!found) throw notFound(`Step ${step} not found.`);
    return of === 'output' ? found.output : found.error;
  }
  const workflow = await getWorkflow(operator, workflowID);
  if (!workflow) throw workflowMissing(workflowID);
  return { input: workflow.input, output: workflow.output, error: workflow.error }[of];
}
