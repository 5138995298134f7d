// What a worker process of these tests does, whichever library it runs on: it registers the workflows below and carries out
// the commands that come as lines of JSON. `effects` is a table of the application that no library knows.
import { createInterface } from 'node:readline';
import pg from 'pg';

const POLL_MS = 20;

/** Registers the workflows. `kind` is the name of the library; one workflow is there on that library only. */
function register(DBOS, pool, kind) {
  const effect = async (workflow, step) => {
    await pool.query('INSERT INTO public.effects (workflow, step, kind, pid) VALUES ($1, $2, $3, $4)', [
      workflow,
      step,
      kind,
      process.pid,
    ]);
    return step;
  };
  const gateOpens = async (gate) => {
    for (;;) {
      const { rowCount } = await pool.query('SELECT 1 FROM public.gates WHERE gate = $1', [gate]);
      if (rowCount > 0) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  };
  const step = (name) => DBOS.runStep(() => effect(DBOS.workflowID, name), { name });

  async function echo(value) {
    return value;
  }
  async function fail(message) {
    throw new Error(message);
  }
  async function steps(count) {
    const done = [];
    for (let number = 0; number < count; number += 1) done.push(await step(`s${number}`));
    return done;
  }
  /** Stands still in the middle until the gate opens. */
  async function gated(gate, at) {
    const first = await step('first');
    await DBOS.runStep(() => gateOpens(gate), { name: 'gate' });
    const last = await step('last');
    return { first, last, at };
  }
  /** A bit of everything that a history can hold. */
  async function mixed(message) {
    await step('before');
    await DBOS.setEvent('stage', 'waiting');
    const child = await DBOS.startWorkflow(registered.steps, { workflowID: `${DBOS.workflowID}-child` })(2);
    const received = await DBOS.recv('topic', 60);
    await DBOS.sleep(10);
    await step('after');
    return { message, received, child: await child.getResult() };
  }
  async function tick() {
    await step('tick');
  }
  const registered = {};
  // A bundler may change the names of functions.
  for (const [name, run] of Object.entries({ echo, fail, steps, gated, mixed, tick })) {
    registered[name] = DBOS.registerWorkflow(run, { name });
  }
  registered[`only-${kind}`] = DBOS.registerWorkflow((count) => steps(count), { name: `only-${kind}` });
  return registered;
}

/** Carries out commands until the process is ended. */
export function serve({ DBOS, DBOSClient }, settings) {
  const { kind, url, config = {}, queues = [] } = settings;
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on('error', () => {});
  const workflows = register(DBOS, pool, kind);
  let client;
  const commands = {
    async launch() {
      DBOS.setConfig({ name: 'shared', systemDatabaseUrl: url, logLevel: 'warn', ...config });
      await DBOS.launch();
      for (const [name, options] of queues) await DBOS.registerQueue(name, options);
    },
    async start({ workflow, args = [], ...options }) {
      const handle = await DBOS.startWorkflow(workflows[workflow], options)(...args);
      return handle.workflowID;
    },
    async run({ workflow, args = [] }) {
      const run = workflows[workflow];
      return run(...args);
    },
    async result({ id }) {
      return DBOS.retrieveWorkflow(id).getResult();
    },
    /** Calls a method of `DBOS`, or of a client; a handle becomes its ID. */
    async call({ on, method, args = [] }) {
      if (on === 'client') client ??= await DBOSClient.create({ systemDatabaseUrl: url });
      const value = await (on === 'client' ? client : DBOS)[method](...args);
      return value?.workflowID !== undefined && value.getResult ? value.workflowID : value;
    },
    async shutdown() {
      await client?.destroy();
      await DBOS.shutdown();
      await pool.end();
    },
  };
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { number, command, ...options } = JSON.parse(line);
    commands[command](options).then(
      (value) => answer({ number, value }),
      (error) => answer({ number, error: `${error.code ?? error.name}: ${error.message}\n${error.stack}` }),
    );
  });
  answer({ number: 0 });
}

function answer(content) {
  process.stdout.write(`@${JSON.stringify(content)}\n`);
}
