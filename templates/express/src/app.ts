import { DBOS } from 'everstep';
import express from 'express';
import { order } from './workflows.ts';

export const app = express();

app.post('/orders/:id', async (request, response) => {
  const workflowID = `order-${request.params.id}`;
  await DBOS.startWorkflow(order, { workflowID })(request.params.id);
  response.status(202).json({ workflowID });
});

app.get('/orders/:id', async (request, response) => {
  const found = await DBOS.getWorkflowStatus(`order-${request.params.id}`);
  if (found) response.json({ status: found.status, output: found.output });
  else response.status(404).json({ error: 'There is no such order.' });
});
