import { DBOS } from 'everstep';
import { Hono } from 'hono';
import { order } from './workflows.ts';

export const app = new Hono();

app.post('/orders/:id', async (context) => {
  const id = context.req.param('id');
  const workflowID = `order-${id}`;
  await DBOS.startWorkflow(order, { workflowID })(id);
  return context.json({ workflowID }, 202);
});

app.get('/orders/:id', async (context) => {
  const found = await DBOS.getWorkflowStatus(`order-${context.req.param('id')}`);
  if (!found) return context.json({ error: 'There is no such order.' }, 404);
  return context.json({ status: found.status, output: String(found.output) });
});
