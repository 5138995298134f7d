// The workflows that are crashed. Each step returns a fresh token, and each workflow the tokens of its steps and children
// in their order, so that an outcome can be held against the checkpoints it must rest on.
import { existsSync } from 'node:fs';
import { newID } from '../../src/kernel/base/ids.js';
import type { DBOSInstance } from '../../src/faces/library/dbos.js';
import type { Journal } from './journal.js';

export const NAMES = [
  'everything',
  'pair',
  'plain',
  'one',
  'five',
  'held',
  'heldOutcome',
  'sleeper',
  'guardian',
  'family',
  'job',
  'mail',
  'streamer',
  'forker',
  'ledger',
  'counter',
] as const;
export type WorkflowName = (typeof NAMES)[number];

/** What `streamer` writes: so many values after each of its steps. In the middle it waits at the gate. */
export const STREAMER_STEPS = 10;
export const STREAMER_VALUES = 20;

/** How often `counter` sets its event. */
export const COUNTER_STEPS = 6;

/** How many tokens the outcome of each workflow has. */
export const TOKENS: Readonly<Record<WorkflowName, number>> = {
  everything: 8,
  pair: 2,
  plain: 0,
  one: 1,
  five: 5,
  held: 3,
  heldOutcome: 1,
  sleeper: 2,
  guardian: 4,
  family: 6,
  job: 1,
  mail: 3,
  streamer: STREAMER_STEPS,
  forker: 3,
  ledger: 4,
  counter: COUNTER_STEPS,
};

export interface WorkflowSettings {
  readonly journal: Journal;
  /** Held workflows wait until this file exists; without it they do not wait. */
  readonly gate?: string;
  /** How long the bodies of the steps of `five` and `family` take. */
  readonly stepMs?: number;
  /** How long `everything` and `sleeper` sleep. */
  readonly sleepMs?: number;
  /** Books an amount in a transaction of the application's database, and returns a fresh token, which is in the booking. */
  readonly book?: (name: string) => Promise<string>;
}

/** A job takes its length in milliseconds; the others take nothing. */
export type Workflow = (lengthMs?: number) => Promise<string[]>;

export function registerWorkflows(DBOS: DBOSInstance, settings: WorkflowSettings): Record<WorkflowName, Workflow> {
  const { journal, gate, stepMs = 0, sleepMs = 60, book = async () => newID() } = settings;

  const effect = (name: string, body?: () => Promise<void>): Promise<string> =>
    DBOS.runStep(
      async () => {
        const token = newID();
        journal.write({
          kind: 'step',
          workflowID: DBOS.workflowID ?? '',
          stepID: DBOS.stepID ?? -1,
          name,
          token,
          at: Date.now(),
        });
        await body?.();
        return token;
      },
      { name },
    );

  const register = (name: WorkflowName, body: Workflow): Workflow =>
    DBOS.registerWorkflow(
      (lengthMs) => {
        journal.write({ kind: 'run', workflowID: DBOS.workflowID ?? '' });
        return body(lengthMs);
      },
      { name },
    );

  const atGate = async (): Promise<void> => {
    while (gate !== undefined && !existsSync(gate)) await pause(5);
  };
  const slowly = stepMs > 0 ? () => pause(stepMs) : undefined;

  const pair = register('pair', async () => [await effect('one'), await effect('two')]);
  const plain = register('plain', async () => []);
  const one = register('one', async () => [await effect('only')]);

  const everything = register('everything', async () => {
    const first = await effect('first');
    const called = await pair();
    const handle = await DBOS.startWorkflow(pair)();
    await DBOS.waitAll([handle]);
    const started = await handle.getResult();
    await DBOS.sleep(sleepMs);
    journal.write({ kind: 'woke', workflowID: DBOS.workflowID ?? '', at: Date.now() });
    const sides = [effect('left'), effect('right')];
    await DBOS.wait(sides);
    const last = await effect('last');
    return [first, ...called, ...started, ...(await Promise.all(sides)), last];
  });

  const five = register('five', async () => {
    const tokens: string[] = [];
    for (let number = 1; number <= 5; number += 1) tokens.push(await effect(`step ${number}`, slowly));
    return tokens;
  });

  const family = register('family', async () => {
    const before = await effect('before', slowly);
    const children = [pair(), pair()];
    const tokens = (await Promise.all(children)).flat();
    await DBOS.sleep(stepMs + 1);
    return [before, ...tokens, await effect('after', slowly)];
  });

  const held = register('held', async () => {
    const before = await effect('before');
    return [before, await effect('held', atGate), await effect('after')];
  });

  const heldOutcome = register('heldOutcome', async () => {
    const before = await effect('before');
    await atGate();
    return [before, `pid:${process.pid}`];
  });

  const sleeper = register('sleeper', async () => {
    const before = await effect('before');
    await DBOS.sleep(sleepMs);
    journal.write({ kind: 'woke', workflowID: DBOS.workflowID ?? '', at: Date.now() });
    return [before, await effect('after')];
  });

  const guardian = register('guardian', async () => {
    const before = await effect('before');
    const child = await DBOS.startWorkflow(sleeper)();
    return [before, ...(await child.getResult()), await effect('after')];
  });

  const job = register('job', async (lengthMs = 0) => [
    await effect('job', async () => {
      if (lengthMs > 0) await pause(lengthMs);
      await atGate();
      journal.write({ kind: 'ended', workflowID: DBOS.workflowID ?? '', at: Date.now() });
    }),
  ]);

  const mail = register('mail', async () => {
    const self = DBOS.workflowID ?? '';
    const first = await effect('first');
    await DBOS.send(self, first, 'mail');
    await DBOS.setEvent('received', await DBOS.recv('mail', 60));
    for (const number of [0, 1, 2]) await DBOS.writeStream('numbers', number);
    const writes = await effect('writes', async () => {
      await DBOS.writeStream('numbers', 'of the step');
      await DBOS.send(self, 'of the step', 'later', `${self} step`);
    });
    await DBOS.writeStream('numbers', 3);
    await DBOS.closeStream('numbers');
    const later = await DBOS.recv('later', 60);
    await DBOS.setEvent('received', [await DBOS.getEvent(self, 'received', 60), later]);
    return [first, writes, await effect('last')];
  });

  const streamer = register('streamer', async () => {
    const tokens: string[] = [];
    for (let step = 0; step < STREAMER_STEPS; step += 1) {
      tokens.push(await effect(`step ${step}`, step === STREAMER_STEPS / 2 ? atGate : undefined));
      for (let n = 0; n < STREAMER_VALUES; n += 1) await DBOS.writeStream('values', step * STREAMER_VALUES + n);
    }
    return tokens;
  });

  const forker = register('forker', async () => {
    const first = await effect('first');
    const child = await DBOS.startWorkflow(one)();
    const own = await child.getResult();
    const fork = await DBOS.forkWorkflow<string[]>(child.workflowID, 0);
    return [first, ...own, ...(await fork.getResult())];
  });

  const ledger = register('ledger', async () => {
    const before = await effect('before');
    const booked = [await book('debit'), await book('credit')];
    return [before, ...booked, await effect('after', slowly)];
  });

  const counter = register('counter', async () => {
    const tokens: string[] = [];
    for (let count = 1; count <= COUNTER_STEPS; count += 1) {
      await DBOS.setEvent('count', count);
      tokens.push(await effect(`count ${count}`, slowly));
    }
    return tokens;
  });

  return {
    ledger,
    counter,
    forker,
    mail,
    streamer,
    everything,
    pair,
    plain,
    one,
    five,
    held,
    heldOutcome,
    sleeper,
    guardian,
    family,
    job,
  };
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
