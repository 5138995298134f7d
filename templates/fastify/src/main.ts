import { createApp } from './app.ts';
import { systemDatabaseUrl } from './database.ts';

const app = createApp(systemDatabaseUrl);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void app.close());

console.log(await app.listen({ port: Number(process.env['PORT'] ?? 3000) }));
