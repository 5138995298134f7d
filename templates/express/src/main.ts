import type { AddressInfo } from 'node:net';
import { DBOS } from 'everstep';
import { app } from './app.ts';
import { systemDatabaseUrl } from './database.ts';

DBOS.setConfig({ name: 'everstep-app', systemDatabaseUrl });
await DBOS.launch();
DBOS.shutdownOnSignals();

const server = app.listen(Number(process.env['PORT'] ?? 3000), () => {
  console.log(`http://localhost:${(server.address() as AddressInfo).port}`);
});
