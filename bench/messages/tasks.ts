// What a worker process does for each command, with whatever library it has.
//
// A round of messages is one message to an echoing workflow and one back to a workflow of the asking process, so half of it
// is the way from send to recv. A round of events is one message that makes a workflow set an event, whose value is the
// moment at which it was set, to somebody who waits for it.
import { answer, now } from '../engine/commands.js';
import { configure, pause } from '../engine/workload.js';
import type { DurationAnswer, LatencyAnswer, MessagingCommand } from './commands.js';
import type { MessagingLibrary } from './library.js';

const LONG_SECONDS = 3600;
const RECEIVERS = 100;
const SETTLE_MS = 1500;

export async function runMessagingTask(library: MessagingLibrary, command: MessagingCommand): Promise<void> {
  process.stdin.on('end', () => process.exit()).resume();
  configure(library, command.url, command.task);
  const workflows = registerWorkflows(library);
  await library.launch();
  await occupy(library, workflows, command.waiters ?? 0);
  switch (command.task) {
    case 'serve':
      return serve(library, workflows, command);
    case 'ask-messages':
      return askMessages(library, workflows, command);
    case 'ask-events':
      return askEvents(library, workflows, command);
    case 'fan-in':
      return fanIn(library, workflows, command.values ?? 0);
    case 'read-stream':
      return readStream(library, command.values ?? 0);
  }
}

type Workflows = ReturnType<typeof registerWorkflows>;

function registerWorkflows(library: MessagingLibrary) {
  const rounds: number[] = [];
  return {
    rounds,
    /** Sends every message back to whom it names. */
    echo: library.registerWorkflow(
      async () => {
        for (;;) {
          const to = (await library.recv('echo', LONG_SECONDS)) as string;
          if (to === '') return;
          await library.send(to, 'back', 'back');
        }
      },
      { name: 'echo' },
    ),
    /** Sends messages to the echo and notes how long each takes to come back. */
    ping: library.registerWorkflow(
      async (count: number) => {
        for (let round = 0; round < count; round += 1) {
          const startedAt = performance.now();
          await library.send('echo', 'ping', 'echo');
          await library.recv('back', LONG_SECONDS);
          rounds.push(performance.now() - startedAt);
        }
      },
      { name: 'ping' },
    ),
    /** Sets an event for every message. */
    publish: library.registerWorkflow(
      async () => {
        for (;;) {
          const key = (await library.recv('publish', LONG_SECONDS)) as string;
          if (key === '') return;
          await library.setEvent(key, epochMs());
        }
      },
      { name: 'publish' },
    ),
    receive: library.registerWorkflow(
      async (count: number) => {
        for (let received = 0; received < count; received += 1) await library.recv('work', LONG_SECONDS);
      },
      { name: 'receive' },
    ),
    wait: library.registerWorkflow(() => library.recv('never', LONG_SECONDS), { name: 'wait' }),
    stream: library.registerWorkflow(
      async (values: number) => {
        await library.recv('begin', LONG_SECONDS);
        const perStep = values / 10;
        for (let step = 0; step < 10; step += 1) {
          await library.runStep(
            async () => {
              for (let value = 0; value < perStep; value += 1)
                await library.writeStream('values', step * perStep + value);
            },
            { name: 'write' },
          );
        }
        await library.closeStream('values');
      },
      { name: 'stream' },
    ),
  };
}

/** Comparable between processes of one machine, and finer than a millisecond. */
function epochMs(): number {
  return performance.timeOrigin + performance.now();
}

/** Has so many workflows wait for messages that never come, and as many others for events. */
async function occupy(library: MessagingLibrary, { wait }: Workflows, waiters: number): Promise<void> {
  for (let started = 0; started < waiters / 2; started += RECEIVERS) {
    await Promise.all(Array.from({ length: RECEIVERS }, () => library.startWorkflow(wait)()));
  }
  for (let number = 0; number < waiters / 2; number += 1) {
    void library.getEvent('nobody', `never ${number}`, LONG_SECONDS).catch(() => undefined);
  }
  if (waiters > 0) await pause(SETTLE_MS * 2);
}

async function serve(library: MessagingLibrary, workflows: Workflows, { values = 0 }: MessagingCommand): Promise<void> {
  await library.startWorkflow(workflows.echo, { workflowID: 'echo' })();
  await library.startWorkflow(workflows.publish, { workflowID: 'publish' })();
  await library.startWorkflow(workflows.stream, { workflowID: 'stream' })(values);
  answer(now('ready'));
}

async function askMessages(
  library: MessagingLibrary,
  workflows: Workflows,
  { isRemote = false, rounds = 0 }: MessagingCommand,
): Promise<void> {
  if (!isRemote) await library.startWorkflow(workflows.echo, { workflowID: 'echo' })();
  await pause(SETTLE_MS);
  const handle = await library.startWorkflow(workflows.ping, { workflowID: 'ping' })(rounds);
  await handle.getResult();
  // One way is half of the round; the first rounds warm up.
  const ways = workflows.rounds.slice(Math.floor(rounds / 10)).map((elapsedMs) => elapsedMs / 2);
  answer({ rounds: ways } satisfies LatencyAnswer);
  process.exit();
}

async function askEvents(
  library: MessagingLibrary,
  workflows: Workflows,
  { isRemote = false, rounds = 0 }: MessagingCommand,
): Promise<void> {
  if (!isRemote) await library.startWorkflow(workflows.publish, { workflowID: 'publish' })();
  await pause(SETTLE_MS);
  const ways: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const key = `event ${round}`;
    const seen = library.getEvent('publish', key, LONG_SECONDS).then(epochMs);
    await library.send('publish', key, 'publish');
    const seenAt = await seen;
    // The value is the moment at which the workflow began to set the event.
    const setAt = Number(await library.getEvent('publish', key, LONG_SECONDS));
    if (round >= rounds / 10) ways.push(seenAt - setAt);
  }
  answer({ rounds: ways } satisfies LatencyAnswer);
  process.exit();
}

/** Many messages to a hundred workflows, sent as fast as the library takes them, until all are received. */
async function fanIn(library: MessagingLibrary, { receive }: Workflows, count: number): Promise<void> {
  const ids = Array.from({ length: RECEIVERS }, (_, number) => `receiver ${number}`);
  const handles = await Promise.all(
    ids.map((workflowID) => library.startWorkflow(receive, { workflowID })(count / RECEIVERS)),
  );
  const startedAt = performance.now();
  const inFlight = ids.map(async (workflowID) => {
    for (let sent = 0; sent < count / RECEIVERS; sent += 1) await library.send(workflowID, { sent }, 'work');
  });
  await Promise.all([...inFlight, ...handles.map((handle) => handle.getResult())]);
  answer({ elapsedMs: performance.now() - startedAt } satisfies DurationAnswer);
  process.exit();
}

async function readStream(library: MessagingLibrary, values: number): Promise<void> {
  const startedAt = performance.now();
  await library.send('stream', 'now', 'begin');
  let read = 0;
  for await (const value of library.readStream('stream', 'values')) {
    if (value !== read) throw new Error(`value ${String(value)} came at offset ${read}`);
    read += 1;
  }
  if (read !== values) throw new Error(`${read} values instead of ${values}`);
  answer({ elapsedMs: performance.now() - startedAt } satisfies DurationAnswer);
  process.exit();
}
