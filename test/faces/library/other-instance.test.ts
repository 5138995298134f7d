// Members of one instance that are called while another one runs the code. In its workflows they are refused; elsewhere they
// act on their own instance alone.
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { Debouncer } from '../../../src/faces/library/debouncer.js';
import { createDBOS, DBOS as defaultDBOS, type DBOSInstance } from '../../../src/faces/library/dbos.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { topic } from '../../../src/plugins/outbox/topic.js';
import { until } from '../../crash/processes.js';
import { queryOn } from '../../plugins/transaction/scene.js';
import { dropDatabase } from '../../plugins/transaction/scene.js';
import { DIALECTS, setOutbox } from '../../plugins/outbox/scene.js';
import { postgres, sqlite } from '../../rig/dialects.js';

afterAll(dropDatabase);

interface Other {
  readonly DBOS: DBOSInstance;
  readonly workflow: (n: number) => Promise<number>;
  readonly step: (n: number) => Promise<number>;
}

async function drain(values: AsyncIterable<unknown>): Promise<void> {
  const iterator = values[Symbol.asyncIterator]();
  while (!(await iterator.next()).done);
}

const callback = async (): Promise<number> => 1;
const window = { groupByStatus: true, startTime: '2020-01-01T00:00:00Z', endTime: '2030-01-01T00:00:00Z' } as const;

/** A call of each member that has to do with an engine or with the calling code. */
const CALLS: Readonly<Record<string, (other: Other) => unknown>> = {
  'a registered step': ({ step }) => step(1),
  'a registered workflow': ({ workflow }) => workflow(1),
  all: ({ DBOS }) => DBOS.all([callback()]),
  allSettled: ({ DBOS }) => DBOS.allSettled([callback()]),
  any: ({ DBOS }) => DBOS.any([callback()]),
  applicationVersion: ({ DBOS }) => DBOS.applicationVersion,
  applyRetention: ({ DBOS }) => DBOS.applyRetention({ completed: '1 day' }),
  applySchedules: ({ DBOS, workflow }) =>
    DBOS.applySchedules([{ scheduleName: 'x', workflowFn: workflow as never, schedule: '0 0 1 1 *' }]),
  backfillSchedule: ({ DBOS }) => DBOS.backfillSchedule('s', new Date(0), new Date(1)),
  cancelWorkflow: ({ DBOS }) => DBOS.cancelWorkflow('waiting'),
  cancelWorkflows: ({ DBOS }) => DBOS.cancelWorkflows(['waiting']),
  checkHistory: ({ DBOS }) => DBOS.checkHistory('ended'),
  closeStream: ({ DBOS }) => DBOS.closeStream('k'),
  continueAsNew: ({ DBOS }) => DBOS.continueAsNew(1),
  countWorkflows: ({ DBOS }) => DBOS.countWorkflows(),
  createOptionalIndex: ({ DBOS }) => DBOS.createOptionalIndex('queueName'),
  createSchedule: ({ DBOS, workflow }) =>
    DBOS.createSchedule({ scheduleName: 'x', workflowFn: workflow as never, schedule: '0 0 1 1 *' }),
  debounce: ({ DBOS, workflow }) => new Debouncer({ workflow }, DBOS).debounce('key', 1000, 1),
  deleteQueue: ({ DBOS }) => DBOS.deleteQueue('q'),
  deleteSchedule: ({ DBOS }) => DBOS.deleteSchedule('s'),
  deleteWorkflow: ({ DBOS }) => DBOS.deleteWorkflow('ended'),
  deleteWorkflows: ({ DBOS }) => DBOS.deleteWorkflows(['ended']),
  deprecatePatch: ({ DBOS }) => DBOS.deprecatePatch('p'),
  diffHistory: ({ DBOS }) => DBOS.diffHistory('ended', 'ended too'),
  dropOptionalIndex: ({ DBOS }) => DBOS.dropOptionalIndex('queueName'),
  enqueueWorkflowWithOptions: ({ DBOS }) => DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: 'w' }, 1),
  enqueueWorkflowWithOptionsPortable: ({ DBOS }) =>
    DBOS.enqueueWorkflowWithOptionsPortable({ queueName: 'q', workflowName: 'w' }, [1]),
  executorID: ({ DBOS }) => DBOS.executorID,
  explainWorkflow: ({ DBOS }) => DBOS.explainWorkflow('ended'),
  exportHistory: ({ DBOS }) => DBOS.exportHistory('ended'),
  exportWorkflows: ({ DBOS }) => drain(DBOS.exportWorkflows({ workflowIDs: ['ended'] })),
  forkFromFailure: ({ DBOS }) => DBOS.forkFromFailure(['ended'], { startStep: 0 } as never),
  forkWorkflow: ({ DBOS }) => DBOS.forkWorkflow('ended', 0),
  forkWorkflows: ({ DBOS }) => DBOS.forkWorkflows([{ workflowID: 'ended', startStep: 0 }]),
  garbageCollect: ({ DBOS }) => DBOS.garbageCollect({ rowsThreshold: 100 }),
  getAllEvents: ({ DBOS }) => DBOS.getAllEvents('ended'),
  getAllNotifications: ({ DBOS }) => DBOS.getAllNotifications('ended'),
  getAllStreamEntries: ({ DBOS }) => DBOS.getAllStreamEntries('ended'),
  getArchivedWorkflow: ({ DBOS }) => DBOS.getArchivedWorkflow('ended'),
  getEvent: ({ DBOS }) => DBOS.getEvent('ended', 'k', 0),
  getEventDispatchState: ({ DBOS }) => DBOS.getEventDispatchState('s', 'f', 'k'),
  getHistory: ({ DBOS }) => drain(DBOS.getHistory('ended')),
  getLatestApplicationVersion: ({ DBOS }) => DBOS.getLatestApplicationVersion(),
  getMetrics: ({ DBOS }) => DBOS.getMetrics(window.startTime, window.endTime),
  getQueueStats: ({ DBOS }) => DBOS.getQueueStats(),
  getResult: ({ DBOS }) => DBOS.getResult('ended too', 1),
  getSchedule: ({ DBOS }) => DBOS.getSchedule('s'),
  getStepAggregates: ({ DBOS }) => DBOS.getStepAggregates({ groupByFunctionName: true, selectCount: true }),
  getWorkflowAggregates: ({ DBOS }) => DBOS.getWorkflowAggregates({ groupByStatus: true, selectCount: true }),
  getWorkflowStatus: ({ DBOS }) => DBOS.getWorkflowStatus('ended'),
  globalTimeout: ({ DBOS }) => DBOS.globalTimeout(1),
  handleRequests: ({ DBOS }) => DBOS.handleRequests({}, { timeoutSeconds: 0 }),
  importWorkflows: ({ DBOS }) => DBOS.importWorkflows([]),
  iterateWorkflows: ({ DBOS }) => drain(DBOS.iterateWorkflows()),
  listApplicationVersions: ({ DBOS }) => DBOS.listApplicationVersions(),
  listOptionalIndexes: ({ DBOS }) => DBOS.listOptionalIndexes(),
  listQueuedWorkflows: ({ DBOS }) => DBOS.listQueuedWorkflows(),
  listQueues: ({ DBOS }) => DBOS.listQueues(),
  listSchedules: ({ DBOS }) => DBOS.listSchedules(),
  listWorkflowPage: ({ DBOS }) => DBOS.listWorkflowPage(),
  listWorkflowSteps: ({ DBOS }) => DBOS.listWorkflowSteps('ended'),
  listWorkflows: ({ DBOS }) => DBOS.listWorkflows(),
  nextRuns: ({ DBOS }) => DBOS.nextRuns({ scheduleName: 's' } as never, 1),
  now: ({ DBOS }) => DBOS.now(),
  parallel: ({ DBOS }) => DBOS.parallel([callback]),
  partitionHistory: ({ DBOS }) => DBOS.partitionHistory({ every: 'month' } as never),
  patch: ({ DBOS }) => DBOS.patch('p'),
  pauseQueue: ({ DBOS }) => DBOS.pauseQueue('q'),
  pauseSchedule: ({ DBOS }) => DBOS.pauseSchedule('s'),
  planRetention: ({ DBOS }) => DBOS.planRetention({ completed: '1 day' }),
  race: ({ DBOS }) => DBOS.race([callback()]),
  randomUUID: ({ DBOS }) => DBOS.randomUUID(),
  readStream: ({ DBOS }) => drain(DBOS.readStream('ended too', 'k')),
  readStreamOffset: ({ DBOS }) => DBOS.readStreamOffset('ended too', 'k', 0, { timeoutSeconds: 0 }),
  recoverPendingWorkflows: ({ DBOS }) => DBOS.recoverPendingWorkflows(['nobody']),
  recv: ({ DBOS }) => DBOS.recv('t', 0),
  registerQueue: ({ DBOS }) => DBOS.registerQueue('q2'),
  renameApplication: ({ DBOS }) => DBOS.renameApplication('a', 'b'),
  resumeQueue: ({ DBOS }) => DBOS.resumeQueue('q'),
  resumeSchedule: ({ DBOS }) => DBOS.resumeSchedule('s'),
  resumeWorkflow: ({ DBOS }) => DBOS.resumeWorkflow('waiting'),
  resumeWorkflows: ({ DBOS }) => DBOS.resumeWorkflows(['waiting']),
  retrieveQueue: ({ DBOS }) => DBOS.retrieveQueue('q'),
  retrieveWorkflow: ({ DBOS }) => DBOS.retrieveWorkflow('ended'),
  rewindWorkflow: ({ DBOS }) => DBOS.rewindWorkflow('ended'),
  runStep: ({ DBOS }) => DBOS.runStep(callback, { name: 's' }),
  runWithContext: ({ DBOS }) => DBOS.runWithContext({}, callback),
  send: ({ DBOS }) => DBOS.send('waiting', 'x', 't'),
  sendBulk: ({ DBOS }) => DBOS.sendBulk([{ destinationID: 'waiting', message: 'x' }]),
  sendRequest: ({ DBOS }) => DBOS.sendRequest('waiting', 'r', 1, { timeoutMs: 10 }),
  setEvent: ({ DBOS }) => DBOS.setEvent('k', 1),
  setLatestApplicationVersion: ({ DBOS }) => DBOS.setLatestApplicationVersion('v1'),
  setWorkflowAttributes: ({ DBOS }) => DBOS.setWorkflowAttributes('ended', { a: 1 }),
  setWorkflowDelay: ({ DBOS }) => DBOS.setWorkflowDelay('waiting', 5),
  setWorkflowPriority: ({ DBOS }) => DBOS.setWorkflowPriority('waiting', 5),
  sleep: ({ DBOS }) => DBOS.sleep(1),
  sleepSeconds: ({ DBOS }) => DBOS.sleepSeconds(0),
  sleepms: ({ DBOS }) => DBOS.sleepms(1),
  startWorkflow: ({ DBOS, workflow }) => DBOS.startWorkflow(workflow)(1),
  startWorkflows: ({ DBOS, workflow }) => DBOS.startWorkflows(workflow, [{ args: [1] }], { queueName: 'q' }),
  tailHistory: ({ DBOS }) => drain(DBOS.tailHistory({ follow: false })),
  triggerSchedule: ({ DBOS }) => DBOS.triggerSchedule('s'),
  updateSchedule: ({ DBOS }) => DBOS.updateSchedule('s', { schedule: '0 0 2 1 *' }),
  updateWorkflowAttributes: ({ DBOS }) => DBOS.updateWorkflowAttributes('ended', { a: 1 }),
  upsertEventDispatchState: ({ DBOS }) =>
    DBOS.upsertEventDispatchState({ service: 's', workflowFnName: 'f', key: 'k', value: 'v' }),
  wait: ({ DBOS }) => DBOS.wait([callback()]),
  waitAll: ({ DBOS }) => DBOS.waitAll([]),
  waitFirst: ({ DBOS }) => DBOS.waitFirst([{ workflowID: 'ended too' }] as never),
  withAuthedContext: ({ DBOS }) => DBOS.withAuthedContext('u', [], callback),
  withNamedContext: ({ DBOS }) => DBOS.withNamedContext('n', callback),
  withNextWorkflowID: ({ DBOS }) => DBOS.withNextWorkflowID('next', callback),
  withWorkflowQueue: ({ DBOS }) => DBOS.withWorkflowQueue('q', callback),
  withWorkflowTimeout: ({ DBOS }) => DBOS.withWorkflowTimeout(5000, callback),
  writeStream: ({ DBOS }) => DBOS.writeStream('k', 1),
};

/** What an instance says of code that another one runs: the same as of code outside of all. */
const SAID: Readonly<Record<string, (DBOS: DBOSInstance) => unknown>> = {
  assumedRole: (DBOS) => DBOS.assumedRole,
  authenticatedRoles: (DBOS) => DBOS.authenticatedRoles,
  authenticatedUser: (DBOS) => DBOS.authenticatedUser,
  defaultSerializationType: (DBOS) => DBOS.defaultSerializationType,
  getRequest: (DBOS) => DBOS.getRequest(),
  isInStep: (DBOS) => DBOS.isInStep(),
  isInTransaction: (DBOS) => DBOS.isInTransaction(),
  isInWorkflow: (DBOS) => DBOS.isInWorkflow(),
  isWithinWorkflow: (DBOS) => DBOS.isWithinWorkflow(),
  request: (DBOS) => {
    try {
      return DBOS.request;
    } catch (error) {
      return (error as Error).message;
    }
  },
  requestObject: (DBOS) => DBOS.requestObject(),
  stepID: (DBOS) => DBOS.stepID,
  stepStatus: (DBOS) => DBOS.stepStatus,
  workflowID: (DBOS) => DBOS.workflowID,
};

/** Members that register, configure, or are of the process, and where the code's own logs and spans go. */
const NEITHER = new Set([
  ...[
    'constructor',
    'setConfig',
    'isInitialized',
    'launch',
    'shutdown',
    'shutdownOnSignals',
    'migrate',
    'clearRegistry',
  ],
  ...['setAlertHandler', 'registerLifecycleCallback', 'deactivateEventReceivers', 'initEventReceivers', 'adminServer'],
  ...['logRegisteredEndpoints', 'associateClassWithInfo', 'associateFunctionWithInfo', 'associateParamWithInfo'],
  ...['getAssociatedInfo', 'registerWorkflow', 'registerStep', 'workflow', 'step', 'className', 'requiredRole'],
  ...[
    'defaultRequiredRole',
    'registerMiddlewareInstaller',
    'registerSerialization',
    'registerErrors',
    'scheduled',
    'registerScheduled',
  ],
  ...['logger', 'span', 'tracer'],
]);

function membersOf(DBOS: DBOSInstance): string[] {
  const names = new Set<string>();
  for (
    let of = Object.getPrototypeOf(DBOS) as object;
    of !== Object.prototype;
    of = Object.getPrototypeOf(of) as object
  ) {
    for (const name of Object.getOwnPropertyNames(of)) names.add(name);
  }
  return [...names];
}

interface Launched extends Other {
  readonly url: string;
  /** Runs a function in the code of a workflow. */
  inWorkflow<R>(what: () => Promise<R>): Promise<R>;
}

/** Another instance, with workflows that have ended and that wait. */
async function createOther(DBOS: DBOSInstance, url: string): Promise<Launched> {
  const workflow = DBOS.registerWorkflow(async (n: number) => n, { name: 'workflow' });
  const step = DBOS.registerStep(async (n: number) => n, { name: 'step' });
  let body: () => Promise<unknown> = callback;
  const calling = DBOS.registerWorkflow(() => body(), { name: 'calling' });
  DBOS.setConfig({ name: 'other', systemDatabaseUrl: url, logger: silentLogger, applicationVersion: 'v1' });
  await DBOS.launch();
  onTestFinished(() => DBOS.shutdown({ deregister: true }));
  const inWorkflow = <R>(what: () => Promise<R>): Promise<R> => {
    body = what;
    return calling() as Promise<R>;
  };
  return { DBOS, workflow, step, url, inWorkflow };
}

/** The same workflows, queue and schedule in both. */
async function fill({ DBOS, workflow }: Pick<Other, 'DBOS' | 'workflow'>): Promise<void> {
  await DBOS.registerQueue('q');
  await DBOS.pauseQueue('q');
  await DBOS.createSchedule({ scheduleName: 's', workflowFn: workflow as never, schedule: '0 0 1 1 *' });
  for (const workflowID of ['ended', 'ended too']) {
    await (await DBOS.startWorkflow(workflow, { workflowID })(1)).getResult();
  }
  await DBOS.startWorkflow(workflow, { workflowID: 'waiting', queueName: 'q' })(1);
}

/** What became of the calls. */
async function callAll(other: Other): Promise<Record<string, string>> {
  const outcomes: Record<string, string> = {};
  for (const [name, call] of Object.entries(CALLS)) {
    try {
      await call(other);
      outcomes[name] = 'done';
    } catch (error) {
      outcomes[name] = (error as Error).message;
    }
  }
  return outcomes;
}

const TABLES = [
  'workflow_status',
  'operation_outputs',
  'workflow_schedules',
  'queues',
  'notifications',
  'workflow_events',
];

async function contentsOf(url: string): Promise<unknown[]> {
  const query = queryOn(url);
  const prefix = url.startsWith('sqlite') ? '' : 'dbos.';
  return Promise.all(TABLES.map(async (name) => [name, await query(`SELECT * FROM ${prefix}${name} ORDER BY 1, 2`)]));
}

test('each member is in one of the tables', () => {
  const listed = [...Object.keys(CALLS).filter((name) => !name.includes(' ')), ...Object.keys(SAID), ...NEITHER];

  expect(membersOf(createDBOS()).filter((name) => !listed.includes(name))).toEqual([]);
  expect(listed.filter((name) => name !== 'debounce' && !membersOf(createDBOS()).includes(name))).toEqual([]);
});

describe.each(DIALECTS)('the members of another instance on %s', (dialect, adapter) => {
  const createURL = () => (dialect === 'postgres' ? postgres : sqlite).createURL();
  const jobs = topic<number>('jobs');

  async function setup() {
    const scene = await setOutbox(adapter, { isLaunched: false, isShared: true });
    const other = await createOther(createDBOS(), await createURL());
    const { DBOS, source, outbox } = scene;
    const own = DBOS.registerWorkflow(async (n: number) => n, { name: 'workflow' });
    /** Runs a function in code that the first instance runs. */
    let body: () => Promise<unknown> = async () => {};
    let handled: unknown;
    const places = {
      'a workflow': DBOS.registerWorkflow(() => body(), { name: 'a workflow' }),
      'a step': DBOS.registerWorkflow(() => DBOS.runStep(() => body(), { name: 'step' }), { name: 'a step' }),
      'a transaction': DBOS.registerWorkflow(() => source.runTransaction(() => body(), { name: 'transaction' }), {
        name: 'a transaction',
      }),
    };
    outbox.on(jobs, async () => {
      handled = await body();
    });
    await DBOS.launch();
    await fill({ DBOS, workflow: own });
    await fill(other);
    const run = <R>(place: keyof typeof places, what: () => Promise<R>): Promise<R> => {
      body = what;
      return DBOS.withAuthedContext('ann', ['admin'], () => places[place]() as Promise<R>);
    };
    const inHandler = async <R>(what: () => Promise<R>): Promise<R> => {
      body = what;
      handled = undefined;
      await source.runTransaction(() => outbox.publish(jobs, 1), { name: 'publish' });
      await until('the handler has run', async () => handled !== undefined);
      return handled as R;
    };
    return { ...scene, other, run, inHandler, url: scene.scene.systemURL };
  }

  test.each(['a workflow', 'a step', 'a transaction'] as const)('are refused in %s', async (place) => {
    const { other, run, url } = await setup();
    const before = await contentsOf(other.url);

    const outcomes = await run(place, () => callAll(other));

    expect(Object.entries(outcomes).filter(([, message]) => !message.includes('runs on another instance'))).toEqual([]);
    expect(await contentsOf(other.url)).toEqual(before);
    const rows = JSON.stringify(await contentsOf(url));
    expect(rows).toContain('ended too');
    expect(rows).not.toContain('DBOS.');
  });

  test('are refused between DBOS and an instance, in either direction', async () => {
    const theDefault = await createOther(defaultDBOS, await createURL());
    const created = await createOther(createDBOS(), await createURL());
    for (const launched of [theDefault, created]) await fill(launched);
    const isRefused = (message: string): boolean => message.includes('runs on another instance');

    const ofCreated = await theDefault.inWorkflow(() => callAll(created));
    const ofDefault = await created.inWorkflow(() => callAll(theDefault));

    expect(Object.values(ofCreated).filter((message) => !isRefused(message))).toEqual([]);
    expect(Object.values(ofDefault).filter((message) => !isRefused(message))).toEqual([]);
    for (const { DBOS } of [theDefault, created]) expect(await DBOS.getWorkflowStatus('ended')).not.toBeNull();
  });

  test.each(['a workflow', 'a step', 'a transaction'] as const)('say nothing of %s', async (place) => {
    const { other, run } = await setup();
    const said = () => Object.fromEntries(Object.entries(SAID).map(([name, say]) => [name, say(other.DBOS)]));
    const outside = said();

    expect(await run(place, async () => said())).toEqual(outside);
  });

  test('act on their own database in a handler of an outbox', async () => {
    const { other, inHandler, url } = await setup();
    const before = await contentsOf(url);

    const outcomes = await inHandler(() => callAll(other));

    expect(Object.values(outcomes).filter((message) => message.includes('another instance'))).toEqual([]);
    expect(outcomes).toMatchObject({ deleteWorkflow: 'done', startWorkflow: 'done', cancelWorkflow: 'done' });
    expect(await contentsOf(url)).toEqual(before);
    expect(await other.DBOS.getWorkflowStatus('ended')).toBeNull();
  });

  test('do not take the settings of a caller for their own', async () => {
    const { DBOS, other } = await setup();

    const [user, handle] = await DBOS.runWithContext(
      { authenticatedUser: 'ann', authenticatedRoles: ['admin'], idAssignedForNextWorkflow: 'assigned', request: {} },
      async () => [other.DBOS.authenticatedUser, await other.DBOS.startWorkflow(other.workflow)(1)] as const,
    );

    expect(user).toBe('');
    expect(handle.workflowID).not.toBe('assigned');
    expect(await handle.getStatus()).toMatchObject({ authenticatedUser: '', authenticatedRoles: [] });
  });

  test('handles of another instance are refused in a workflow, and in a wait', async () => {
    const { DBOS, other, run } = await setup();
    const handle = other.DBOS.retrieveWorkflow('ended');

    await expect(run('a workflow', () => handle.getResult())).rejects.toThrow('runs on another instance');
    await expect(run('a step', () => handle.getStatus())).rejects.toThrow('runs on another instance');
    await expect(DBOS.waitFirst([handle])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(DBOS.waitAll([handle])).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a client of the other database acts on that, in a workflow and in a step', async () => {
    const { DBOS, other, run } = await setup();
    const client = await DBOSClient.create({ systemDatabaseUrl: other.url, logger: silentLogger });
    onTestFinished(() => client.destroy());

    await run('a workflow', () => client.deleteWorkflow('ended'));
    await run('a step', () => client.deleteWorkflow('ended too'));

    expect(await other.DBOS.listWorkflows({ workflowIDs: ['ended', 'ended too'] })).toEqual([]);
    expect(await DBOS.listWorkflows({ workflowIDs: ['ended', 'ended too'] })).toHaveLength(2);
  });
});
