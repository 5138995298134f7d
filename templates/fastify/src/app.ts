import { DBOS } from 'everstep';
import fastify, { type FastifyInstance } from 'fastify';
import { order } from './workflows.ts';

interface OrderRoute {
  Params: { id: string };
}

/** Launches Everstep with the server, and shuts it down with it. */
export function createApp(systemDatabaseUrl: string): FastifyInstance {
  const app = fastify();

  app.post<OrderRoute>('/orders/:id', async (request, reply) => {
    const workflowID = `order-${request.params.id}`;
    await DBOS.startWorkflow(order, { workflowID })(request.params.id);
    return reply.code(202).send({ workflowID });
  });

  app.get<OrderRoute>('/orders/:id', async (request, reply) => {
    const found = await DBOS.getWorkflowStatus(`order-${request.params.id}`);
    if (!found) return reply.code(404).send({ error: 'There is no such order.' });
    return { status: found.status, output: found.output };
  });

  app.addHook('onReady', async () => {
    DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl });
    await DBOS.launch();
  });
  app.addHook('onClose', () => DBOS.shutdown({ workflowCompletionTimeoutMS: 10_000 }));
  return app;
}
