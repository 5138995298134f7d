import { serve } from '@hono/node-server';
import { DBOS } from 'everstep';
import { app } from './app.ts';
import { systemDatabaseUrl } from './database.ts';

DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl });
await DBOS.launch();
DBOS.shutdownOnSignals();

serve({ fetch: app.fetch, port: Number(process.env['PORT'] ?? 3000) }, ({ port }) => {
  console.log(`http://localhost:${port}`);
});
