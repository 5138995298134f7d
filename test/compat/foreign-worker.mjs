// A worker of a real DBOS release, as a process of its own: `node foreign-worker.mjs dbos-5 <url> <config as JSON>`. It takes
// commands from its parent and answers each with its result.
import { createRequire } from 'node:module';
import pg from 'pg';

const [, , release, url, config] = process.argv;
const require = createRequire(import.meta.url);
const { DBOS } = require(release);

const pool = new pg.Pool({ connectionString: url, max: 8 });
const note = (text, values) => pool.query(text, values);

/** Runs for a while, and notes from when to when. */
DBOS.registerWorkflow(
  async (ms) => {
    await DBOS.runStep(
      async () => {
        const begun = await note(`INSERT INTO spans (kind, begun) VALUES ('dbos', clock_timestamp()) RETURNING id`);
        await new Promise((resolve) => setTimeout(resolve, ms));
        await note(`UPDATE spans SET ended = clock_timestamp() WHERE id = $1`, [begun.rows[0].id]);
      },
      { name: 'span' },
    );
  },
  { name: 'span' },
);

/** Notes a step, sleeps, notes another. */
const nap = DBOS.registerWorkflow(
  async (ms) => {
    await DBOS.runStep(() => note(`INSERT INTO steps VALUES ('dbos', 'before')`).then(() => 1), { name: 'before' });
    await DBOS.sleep(ms);
    await DBOS.runStep(() => note(`INSERT INTO steps VALUES ('dbos', 'after')`).then(() => 2), { name: 'after' });
    return 'dbos';
  },
  { name: 'nap' },
);

const commands = {
  registerQueue: async (name, options) => void (await DBOS.registerQueue(name, options)),
  startNap: async (workflowID, queueName, ms) => void (await DBOS.startWorkflow(nap, { workflowID, queueName })(ms)),
  cancel: (workflowID) => DBOS.cancelWorkflow(workflowID),
  resume: async (workflowID) => void (await DBOS.resumeWorkflow(workflowID)),
  shutdown: async () => {
    await DBOS.shutdown();
    await pool.end();
  },
};

process.on('message', async ({ id, command, args }) => {
  try {
    process.send({ id, value: await commands[command](...args) });
  } catch (error) {
    process.send({ id, error: String(error) });
  }
  if (command === 'shutdown') process.disconnect();
});

const silent = { info() {}, debug() {}, warn() {}, error() {} };
DBOS.setConfig({ name: 'test', systemDatabaseUrl: url, runAdminServer: false, logger: silent, ...JSON.parse(config) });
await DBOS.launch();
process.send({ id: 0 });
