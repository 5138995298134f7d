import { DBOS } from 'everstep';
import { order } from '../../../workflows.ts';

interface Context {
  params: Promise<{ id: string }>;
}

export async function POST(_request: Request, { params }: Context): Promise<Response> {
  const { id } = await params;
  const workflowID = `order-${id}`;
  await DBOS.startWorkflow(order, { workflowID })(id);
  return Response.json({ workflowID }, { status: 202 });
}

export async function GET(_request: Request, { params }: Context): Promise<Response> {
  const { id } = await params;
  const found = await DBOS.getWorkflowStatus(`order-${id}`);
  if (!found) return Response.json({ error: 'There is no such order.' }, { status: 404 });
  return Response.json({ status: found.status, output: found.output });
}
