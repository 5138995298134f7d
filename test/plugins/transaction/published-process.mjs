// A program written for DBOS, with published data sources of DBOS, that is run on Everstep under an alias.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { DrizzleDataSource } from '@dbos-inc/drizzle-datasource';
import { KnexDataSource } from '@dbos-inc/knex-datasource';
import { PostgresDataSource } from '@dbos-inc/postgres-datasource';
import { sql } from 'drizzle-orm';

const { url, systemURL } = JSON.parse(process.argv[2]);
const { hostname: host, port, username, password, pathname } = new URL(url);

const knex = new KnexDataSource('knex', { client: 'pg', connection: url });
const drizzle = new DrizzleDataSource('drizzle', { connectionString: url });
const postgres = new PostgresDataSource('postgres', {
  host,
  port: Number(port),
  username,
  password,
  database: pathname.slice(1),
});

const insert = {
  knex: (note) => knex.client('effects').insert({ workflow_id: DBOS.workflowID, note }),
  drizzle: (note) =>
    drizzle.client.execute(sql`INSERT INTO effects (workflow_id, note) VALUES (${DBOS.workflowID}, ${note})`),
  postgres: (note) =>
    postgres.client`INSERT INTO effects (workflow_id, note) VALUES (${DBOS.workflowID ?? 'none'}, ${note})`,
};

let bodies = 0;
const workflows = Object.entries({ knex, drizzle, postgres }).map(([name, source]) => {
  const registered = source.registerTransaction(
    async (note) => {
      bodies += 1;
      await insert[name](note);
      return { note, stepID: DBOS.stepID, isInTransaction: DBOS.isInTransaction() };
    },
    { name: `${name}-registered` },
  );
  return DBOS.registerWorkflow(
    async () => {
      const first = await registered('registered');
      const second = await source.runTransaction(
        async () => {
          bodies += 1;
          await insert[name]('run');
          return new Date(0);
        },
        { name: 'run', isolationLevel: 'serializable' },
      );
      const failed = await source
        .runTransaction(
          async () => {
            bodies += 1;
            await insert[name]('undone');
            throw new Error('no');
          },
          { name: 'failing' },
        )
        .catch((error) => error.message);
      return [first, second, failed];
    },
    { name },
  );
});

DBOS.setConfig({ name: 'published', applicationVersion: 'v1', systemDatabaseUrl: systemURL, logLevel: 'error' });
await DBOS.launch();
const results = {};
for (const workflow of workflows) {
  const handle = await DBOS.startWorkflow(workflow, { workflowID: workflow.name })();
  results[workflow.name] = await handle.getResult();
}
await postgres.runTransaction(() => insert.postgres('outside'), { name: 'outside' });
await DBOS.shutdown();
console.log(JSON.stringify({ results, bodies }));
