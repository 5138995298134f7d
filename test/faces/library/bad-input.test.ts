// Every public function, with wrong values for each of its arguments and options. Each call is refused at once, with an
// error of the catalogue that names the argument, as a rejection where a promise is promised; and nothing was written.
import { expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { DBOSClient } from '../../../src/faces/client/client.js';
import { DebouncerClient } from '../../../src/faces/client/debouncer-client.js';
import { Debouncer } from '../../../src/faces/library/debouncer.js';
import { createDBOS, type DBOSInstance } from '../../../src/faces/library/dbos.js';
import { WorkflowQueue } from '../../../src/faces/library/workflow-queue.js';
import { DBOSError } from '../../../src/kernel/errors/errors.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { type Kind, WRONG } from './bad-values.js';

/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-argument -- the point is to pass what the types forbid */
type Call = (value: any) => unknown;
type Row = readonly [argument: string, kind: Kind, call: Call];

interface Surface {
  readonly DBOS: DBOSInstance;
  readonly client: DBOSClient;
  readonly workflow: () => Promise<unknown>;
  /** Makes a call in the code of a workflow. */
  readonly inWorkflow: (call: () => unknown) => Promise<unknown>;
}

/** Each argument by itself: the others are right. */
function args(verb: string, rows: Readonly<Record<string, readonly [Kind, Call]>>): Row[] {
  return Object.entries(rows).map(([argument, [kind, call]]) => [`${verb}: ${argument}`, kind, call] as const);
}

/** Each option by itself, and the object of options. Options may be left out, so undefined and null are right. */
function options(verb: string, kinds: Readonly<Record<string, Kind>>, call: Call): Row[] {
  const rows = Object.entries(kinds).map(([key, kind]): Row => [
    `${verb}: options.${key} (optional)`,
    kind,
    (value) => call({ [key]: value }),
  ]);
  return [...rows, [`${verb}: options (optional)`, 'options', call]];
}

const LIST_FILTERS = {
  workflowIDs: 'filter',
  workflowName: 'filter',
  status: 'word',
  startTime: 'date',
  endTime: 'date',
  applicationVersion: 'filter',
  authenticatedUser: 'filter',
  queueName: 'filter',
  limit: 'count',
  offset: 'count',
  sortDesc: 'flag',
  loadInput: 'flag',
  loadOutput: 'flag',
} as const satisfies Record<string, Kind>;

const QUEUE_OPTIONS = {
  concurrency: 'positiveInteger',
  workerConcurrency: 'positiveInteger',
  priorityEnabled: 'flag',
  partitionQueue: 'flag',
  rateLimit: 'options',
  minPollingIntervalMs: 'positiveNumber',
} as const satisfies Record<string, Kind>;

const SCHEDULE_OPTIONS = {
  automaticBackfill: 'flag',
  cronTimezone: 'timeZone',
  queueName: 'name',
  overlap: 'policy',
  jitterMs: 'count',
} as const satisfies Record<string, Kind>;

const START_OPTIONS = {
  workflowID: 'key',
  queueName: 'name',
  timeoutMS: 'nonNegativeNumber',
  enqueueOptions: 'options',
  authenticatedUser: 'text',
  authenticatedRoles: 'texts',
  duplicationPolicy: 'policy',
  workflowIDReusePolicy: 'policy',
  workflowAttributes: 'attributes',
} as const satisfies Record<string, Kind>;

const STEP_OPTIONS = {
  errors: 'list',
  name: 'name',
  retriesAllowed: 'flag',
  intervalSeconds: 'nonNegativeNumber',
  maxAttempts: 'positiveSafeInteger',
  backoffRate: 'positiveNumber',
  jitter: 'nonNegativeNumber',
  shouldRetry: 'callback',
  timeoutMS: 'positiveNumber',
  preemptible: 'flag',
} as const satisfies Record<string, Kind>;

/** The verbs that `DBOS` and `DBOSClient` share. */
function managementRows(m: DBOSInstance | DBOSClient): Row[] {
  return [
    ...args('cancelWorkflow', { workflowID: ['name', (v) => m.cancelWorkflow(v)] }),
    ...options('cancelWorkflow', { cancelChildren: 'flag' }, (o) => m.cancelWorkflow('absent', o)),
    ...args('cancelWorkflows', { workflowIDs: ['names', (v) => m.cancelWorkflows(v)] }),
    ...args('resumeWorkflow', { workflowID: ['name', (v) => m.resumeWorkflow(v)] }),
    ...options('resumeWorkflow', { queueName: 'name' }, (o) => m.resumeWorkflow('ended', o)),
    ...args('resumeWorkflows', { workflowIDs: ['names', (v) => m.resumeWorkflows(v)] }),
    ...args('deleteWorkflow', {
      workflowID: ['name', (v) => m.deleteWorkflow(v)],
      'deleteChildren (optional)': ['flag', (v) => m.deleteWorkflow('absent', v)],
    }),
    ...args('deleteWorkflows', { workflowIDs: ['names', (v) => m.deleteWorkflows(v)] }),
    ...args('rewindWorkflow', { workflowID: ['name', (v) => m.rewindWorkflow(v)] }),
    ...options('rewindWorkflow', { startStep: 'integer', applicationVersion: 'name', queueName: 'name' }, (o) =>
      m.rewindWorkflow('ended', o),
    ),
    ...args('setWorkflowDelay', {
      workflowID: ['name', (v) => m.setWorkflowDelay(v, 5)],
      delaySeconds: ['delay', (v) => m.setWorkflowDelay('ended', v)],
    }),
    ...args('setWorkflowPriority', {
      workflowID: ['name', (v) => m.setWorkflowPriority(v, 5)],
      priority: ['integer', (v) => m.setWorkflowPriority('ended', v)],
    }),
    ...args('updateWorkflowAttributes', {
      workflowID: ['name', (v) => m.updateWorkflowAttributes(v, { a: 1 })],
      attributes: ['attributes', (v) => m.updateWorkflowAttributes('ended', v)],
    }),
    ...args('setWorkflowAttributes', {
      workflowID: ['name', (v) => m.setWorkflowAttributes(v, { a: 1 })],
      'attributes (optional)': ['attributes', (v) => m.setWorkflowAttributes('ended', v)],
    }),
    ...options(
      'garbageCollect',
      {
        cutoffEpochTimestampMs: 'time',
        rowsThreshold: 'count',
        batchSize: 'positiveInteger',
        onProgress: 'callback',
      },
      (o) => m.garbageCollect(o),
    ),
    ...args('garbageCollect', {
      options: ['options', (v) => m.garbageCollect(v)],
    }),
    ...args('globalTimeout', { cutoff: ['time', (v) => m.globalTimeout(v)] }),
    ...options('exportWorkflows', { workflowIDs: 'filter' }, (o) => drain(m.exportWorkflows(o))),
    ...args('importWorkflows', { source: ['source', (v) => m.importWorkflows(v)] }),
    ...options('listWorkflows', LIST_FILTERS, (o) => m.listWorkflows(o)),
    ...options('listQueuedWorkflows', LIST_FILTERS, (o) => m.listQueuedWorkflows(o)),
    ...args('listWorkflowSteps', { workflowID: ['name', (v) => m.listWorkflowSteps(v)] }),
    ...args('explainWorkflow', { workflowID: ['name', (v) => m.explainWorkflow(v)] }),
    ...options('listSchedules', { status: 'filter', workflowName: 'filter' }, (o) => m.listSchedules(o)),
    ...args('getSchedule', { name: ['name', (v) => m.getSchedule(v)] }),
    ...args('updateSchedule', {
      name: ['name', (v) => m.updateSchedule(v, { schedule: '* * * * *' })],
      updates: ['options', (v) => m.updateSchedule('absent', v)],
    }),
    ...options('updateSchedule: updates', { ...SCHEDULE_OPTIONS, schedule: 'cron' }, (o) =>
      isPlain(o) ? m.updateSchedule('kept', o) : m.updateSchedule('absent', o as never),
    ),
    ...args('pauseSchedule', { name: ['name', (v) => m.pauseSchedule(v)] }),
    ...args('resumeSchedule', { name: ['name', (v) => m.resumeSchedule(v)] }),
    ...args('deleteSchedule', { name: ['name', (v) => m.deleteSchedule(v)] }),
    ...args('triggerSchedule', { name: ['name', (v) => m.triggerSchedule(v)] }),
    ...args('backfillSchedule', {
      name: ['name', (v) => m.backfillSchedule(v, new Date(0), new Date(1))],
      start: ['date', (v) => m.backfillSchedule('absent', v, new Date(1))],
      end: ['date', (v) => m.backfillSchedule('absent', new Date(0), v)],
    }),
    ...args('nextRuns', {
      count: ['positiveInteger', (v) => m.nextRuns({ schedule: '* * * * *' }, v)],
      'schedule.schedule': ['cron', (v) => m.nextRuns({ schedule: v }, 1)],
      'schedule.cronTimezone (optional)': [
        'timeZone',
        (v) => m.nextRuns({ schedule: '* * * * *', cronTimezone: v }, 1),
      ],
    }),
    ...args('retrieveQueue', { name: ['name', (v) => m.retrieveQueue(v)] }),
    ...args('listQueues', { 'applicationName (optional)': ['nameOrNames', (v) => m.listQueues(v)] }),
    ...args('deleteQueue', { name: ['name', (v) => m.deleteQueue(v)] }),
    ...args('pauseQueue', { name: ['name', (v) => m.pauseQueue(v)] }),
    ...args('resumeQueue', { name: ['name', (v) => m.resumeQueue(v)] }),
    ...options('getQueueStats', { queueName: 'filter' }, (o) => m.getQueueStats(o)),
    ...args('setLatestApplicationVersion', { name: ['name', (v) => m.setLatestApplicationVersion(v)] }),
    ...args('renameApplication', {
      'oldName (optional)': ['name', (v) => m.renameApplication(v, 'new')],
      newName: ['name', (v) => m.renameApplication('absent', v)],
    }),
    ...options('renameApplication', { batchSize: 'positiveSafeInteger' }, (o) =>
      m.renameApplication('absent', 'new', o),
    ),
    ...args('registerQueue', { name: ['name', (v) => m.registerQueue(v)] }),
    ...options('registerQueue', QUEUE_OPTIONS, (o) => m.registerQueue('bad', o)),
    ...args('registerErrors', { classes: ['errorClass', (v) => m.registerErrors(v)] }),
    ...args('registerSerialization', { recipe: ['recipe', (v) => m.registerSerialization(v)] }),
    ...args('retrieveWorkflow', { workflowID: ['name', (v) => m.retrieveWorkflow(v)] }),
    ...args('getResult', {
      workflowID: ['name', (v) => m.getResult(v, 1)],
      'timeoutSeconds (optional)': ['limit', (v) => m.getResult('ended', v)],
    }),
    ...args('waitFirst', { handles: ['handles', (v) => m.waitFirst(v)] }),
    ...args('waitAll', { handles: ['handleList', (v) => m.waitAll(v)] }),
    ...args('getEvent', {
      workflowID: ['key', (v) => m.getEvent(v, 'key', 1)],
      key: ['key', (v) => m.getEvent('ended', v, 1)],
      'timeoutSeconds (optional)': ['limit', (v) => m.getEvent('ended', 'key', v)],
    }),
    ...args('send', {
      destinationID: ['key', (v) => m.send(v, 'message')],
      'topic (optional)': ['key', (v) => m.send('ended', 'message', v)],
      'idempotencyKey (optional)': ['key', (v) => m.send('ended', 'message', 'topic', v)],
    }),
    ...args('readStream', {
      workflowID: ['key', (v) => drain(m.readStream(v, 'key'))],
      key: ['key', (v) => drain(m.readStream('ended', v))],
    }),
    ...args('readStreamOffset', {
      workflowID: ['key', (v) => m.readStreamOffset(v, 'key', 0)],
      offset: ['integer', (v) => m.readStreamOffset('ended', 'key', v)],
    }),
    ...args('forkWorkflow', {
      workflowID: ['name', (v) => m.forkWorkflow(v, 0)],
      startStep: ['integer', (v) => m.forkWorkflow('ended', v)],
    }),
    ...options(
      'forkWorkflow',
      { newWorkflowID: 'key', applicationVersion: 'name', timeoutMS: 'positiveNumber', queueName: 'name' },
      (o) => m.forkWorkflow('absent', 0, o),
    ),
    ...args('forkWorkflows', { requests: ['source', (v) => m.forkWorkflows(v)] }),
  ];
}

function engineRows({ DBOS, workflow }: Surface): Row[] {
  const scheduled = workflow as () => Promise<void>;
  const schedule = { scheduleName: 'bad', workflowFn: scheduled, schedule: '0 0 1 1 *' };
  return [
    ...args('setConfig', { config: ['options', (v) => createDBOS().setConfig(v)] }),
    ...args('registerWorkflow', { func: ['callback', (v) => createDBOS().registerWorkflow(v)] }),
    ...options(
      'registerWorkflow',
      {
        name: 'name',
        className: 'name',
        maxRecoveryAttempts: 'integer',
        serialization: 'policy',
        inputSchema: 'recipe',
      },
      (o) => createDBOS().registerWorkflow(async () => 1, o),
    ),
    ...args('registerStep', { func: ['callback', (v) => createDBOS().registerStep(v)] }),
    ...options('registerStep', STEP_OPTIONS, (o) => createDBOS().registerStep(async () => 1, o)),
    ...args('runStep', { func: ['callback', (v) => DBOS.runStep(v)] }),
    ...options('runStep', STEP_OPTIONS, (o) => DBOS.runStep(async () => 1, o)),
    ...args('startWorkflow', { target: ['target', (v) => DBOS.startWorkflow(v as () => Promise<unknown>)()] }),
    ...options('startWorkflow', START_OPTIONS, (o) => DBOS.startWorkflow(workflow, o)()),
    ...options('startWorkflow in a queue', START_OPTIONS, (o) =>
      DBOS.startWorkflow(workflow, isPlain(o) ? { queueName: 'q', ...o } : o)(),
    ),
    ...options(
      'startWorkflow: enqueueOptions',
      {
        deduplicationID: 'key',
        priority: 'integer',
        queuePartitionKey: 'key',
        delaySeconds: 'nonNegativeNumber',
        applicationVersion: 'key',
      },
      (enqueueOptions) => DBOS.startWorkflow(workflow, { queueName: 'q', enqueueOptions })(),
    ),
    ...args('startWorkflows', {
      target: ['target', (v) => DBOS.startWorkflows(v, [{ args: [] }], { queueName: 'q' })],
      starts: ['source', (v) => DBOS.startWorkflows(workflow, v, { queueName: 'q' })],
    }),
    ...args('enqueueWorkflowWithOptions', {
      options: ['options', (v) => DBOS.enqueueWorkflowWithOptions(v)],
      'options.workflowName': ['name', (v) => DBOS.enqueueWorkflowWithOptions({ queueName: 'q', workflowName: v })],
      'options.queueName': ['name', (v) => DBOS.enqueueWorkflowWithOptions({ queueName: v, workflowName: 'w' })],
    }),
    ...args('withNextWorkflowID', {
      workflowID: ['key', (v) => DBOS.withNextWorkflowID(v, async () => 1)],
      callback: ['callback', (v) => DBOS.withNextWorkflowID('next', v)],
    }),
    ...args('withAuthedContext', {
      user: ['text', (v) => DBOS.withAuthedContext(v, ['r'], async () => 1)],
      roles: ['texts', (v) => DBOS.withAuthedContext('u', v, async () => 1)],
      callback: ['callback', (v) => DBOS.withAuthedContext('u', ['r'], v)],
    }),
    ...args('withWorkflowQueue', {
      queueName: ['name', (v) => DBOS.withWorkflowQueue(v, async () => 1)],
      callback: ['callback', (v) => DBOS.withWorkflowQueue('q', v)],
    }),
    ...args('withWorkflowTimeout', {
      'timeoutMS (optional)': ['nonNegativeNumber', (v) => DBOS.withWorkflowTimeout(v, async () => 1)],
      callback: ['callback', (v) => DBOS.withWorkflowTimeout(5, v)],
    }),
    ...args('getWorkflowStatus', { workflowID: ['name', (v) => DBOS.getWorkflowStatus(v)] }),
    ...args('sleep', { durationMS: ['duration', (v) => DBOS.sleep(v)] }),
    ...args('sleepSeconds', { durationSec: ['duration', (v) => DBOS.sleepSeconds(v)] }),
    ...args('createSchedule', {
      options: ['options', (v) => DBOS.createSchedule(v)],
      'options.scheduleName': ['name', (v) => DBOS.createSchedule({ ...schedule, scheduleName: v })],
      'options.schedule': ['cron', (v) => DBOS.createSchedule({ ...schedule, schedule: v })],
    }),
    ...options('createSchedule: options', SCHEDULE_OPTIONS, (o) => DBOS.createSchedule({ ...schedule, options: o })),
    ...args('applySchedules', { schedules: ['source', (v) => DBOS.applySchedules(v)] }),
    ...args('requiredRole', { roles: ['names', (v) => DBOS.requiredRole(v)] }),
    ...args('defaultRequiredRole', { roles: ['names', (v) => DBOS.defaultRequiredRole(v)] }),
    ...args('className', { name: ['name', (v) => DBOS.className(v)] }),
    ...args('new WorkflowQueue', { name: ['name', (v) => new WorkflowQueue(v, {}, createDBOS())] }),
    ...options('new WorkflowQueue', QUEUE_OPTIONS, (o) => {
      // A number is the concurrency, in the older form.
      if (o !== 5) return new WorkflowQueue('bad', o, createDBOS());
      throw new DBOSError('Refused, as far as this table is concerned.');
    }),
    ...args('new Debouncer', { config: ['options', (v) => new Debouncer(v, DBOS)] }),
    ...args('debounce', {
      key: ['key', (v) => new Debouncer({ workflow }, DBOS).debounce(v, 1000)],
      periodMs: ['positiveNumber', (v) => new Debouncer({ workflow }, DBOS).debounce('key', v)],
    }),
    ...args('all', { promises: ['promises', (v) => DBOS.all(v)] }),
    ...args('race', { promises: ['promises', (v) => DBOS.race(v)] }),
    ...args('wait', { promises: ['promises', (v) => DBOS.wait(v)] }),
    ...options('launch', { conductorURL: 'text', conductorKey: 'text', conductorMetadataOnlyMode: 'flag' }, (o) =>
      createDBOS().launch(o),
    ),
    ...args('setAlertHandler', { handler: ['callback', (v) => createDBOS().setAlertHandler(v)] }),
    ...args('recoverPendingWorkflows', { 'executorIDs (optional)': ['names', (v) => DBOS.recoverPendingWorkflows(v)] }),
    ...options('shutdown', { workflowCompletionTimeoutMS: 'nonNegativeNumber' }, (o) => createDBOS().shutdown(o)),
    ...options('shutdownOnSignals', { signals: 'names', workflowCompletionTimeoutMS: 'nonNegativeNumber' }, (o) =>
      createDBOS().shutdownOnSignals(o),
    ),
    ...args('migrate', { systemDatabaseUrl: ['name', (v) => createDBOS().migrate(v)] }),
    ...args('getEventDispatchState', { service: ['name', (v) => DBOS.getEventDispatchState(v, 'f', 'k')] }),
    ...args('upsertEventDispatchState', { state: ['options', (v) => DBOS.upsertEventDispatchState(v)] }),
  ];
}

/** Operations that belong into a workflow: each row is a workflow of its own. */
function workflowRows({ DBOS, inWorkflow }: Surface): Row[] {
  const rows = [
    ...args('recv', {
      'topic (optional)': ['key', (v) => DBOS.recv(v, 0)],
      'timeoutSeconds (optional)': ['limit', (v) => DBOS.recv('topic', v)],
    }),
    ...args('setEvent', { key: ['key', (v) => DBOS.setEvent(v, 1)] }),
    ...args('writeStream', { key: ['key', (v) => DBOS.writeStream(v, 1)] }),
    ...args('closeStream', { key: ['key', (v) => DBOS.closeStream(v)] }),
    ...args('patch', { name: ['name', (v) => DBOS.patch(v)] }),
    ...args('sleep in a workflow', { durationMS: ['duration', (v) => DBOS.sleep(v)] }),
    ...args('runStep in a workflow', { func: ['callback', (v) => DBOS.runStep(v)] }),
  ];
  return rows.map(([argument, kind, call]): Row => [argument, kind, (value) => inWorkflow(() => call(value))]);
}

function workflowRunner(DBOS: DBOSInstance): Surface['inWorkflow'] {
  let call: () => unknown;
  let thrown: unknown;
  const probe = DBOS.registerWorkflow(
    async () => {
      try {
        await call();
      } catch (error) {
        thrown = error;
      }
    },
    { name: 'probe' },
  );
  return async (next) => {
    call = next;
    thrown = undefined;
    await probe();
    if (thrown !== undefined) throw thrown as Error;
  };
}

function clientRows({ client }: Surface): Row[] {
  const schedule = { scheduleName: 'bad', workflowName: 'w', schedule: '0 0 1 1 *' };
  return [
    ...args('DBOSClient.create', { config: ['options', (v) => DBOSClient.create(v)] }),
    ...args('client.enqueue', {
      options: ['options', (v) => client.enqueue(v)],
      'options.workflowName': ['name', (v) => client.enqueue({ queueName: 'q', workflowName: v })],
      'options.queueName': ['name', (v) => client.enqueue({ queueName: v, workflowName: 'w' })],
    }),
    ...args('client.getWorkflow', { workflowID: ['name', (v) => client.getWorkflow(v)] }),
    ...args('client.createSchedule', {
      options: ['options', (v) => client.createSchedule(v)],
      'options.workflowName': ['name', (v) => client.createSchedule({ ...schedule, workflowName: v })],
      'options.workflowClassName (optional)': [
        'key',
        (v) => client.createSchedule({ ...schedule, workflowClassName: v }),
      ],
    }),
    ...options('client.createSchedule: options', { ...SCHEDULE_OPTIONS, applicationName: 'name' }, (o) =>
      client.createSchedule({ ...schedule, options: o }),
    ),
    ...args('client.applySchedules', {
      'workflowClassName (optional)': ['key', (v) => client.applySchedules([{ ...schedule, workflowClassName: v }])],
    }),
    ...options('client.registerQueue', { applicationName: 'name' }, (o) => client.registerQueue('bad', o)),
    ...options('client.enqueue', { applicationName: 'key', workflowClassName: 'key' }, (o) =>
      client.enqueue(isPlain(o) ? { queueName: 'q', workflowName: 'w', ...o } : o),
    ),
    ...args('new DebouncerClient', {
      config: ['options', (v) => new DebouncerClient(client, v)],
      'config.workflowName': ['name', (v) => new DebouncerClient(client, { workflowName: v })],
    }),
    ...options('new DebouncerClient: config', { workflowClassName: 'key', applicationName: 'name' }, (o) =>
      isPlain(o) ? new DebouncerClient(client, { workflowName: 'w', ...o }) : new DebouncerClient(client, o as never),
    ),
    ...args('client.applySchedules', { schedules: ['source', (v) => client.applySchedules(v)] }),
  ];
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

async function drain(values: AsyncIterable<unknown>): Promise<void> {
  for await (const value of values) void value;
}

const LIMIT_MS = 60_000;
/** These make no promise, and throw. */
const SYNCHRONOUS =
  /^(setConfig|setAlertHandler|registerWorkflow|registerStep|startWorkflow|requiredRole|defaultRequiredRole|className|new |shutdownOnSignals|registerErrors|registerSerialization|retrieveWorkflow)/;

/** What is wrong with how a call was refused; undefined if nothing is. */
async function faultOf(argument: string, call: Call, value: unknown): Promise<string | undefined> {
  let promise: unknown;
  try {
    promise = call(value);
  } catch (error) {
    if (!SYNCHRONOUS.test(argument)) return `threw instead of rejecting: ${String(error)}`;
    return faultIn(error);
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => (timer = setTimeout(() => resolve('late'), LIMIT_MS)));
  try {
    const result = await Promise.race([promise, late]);
    return result === 'late' ? 'hangs' : 'was accepted';
  } catch (error) {
    return faultIn(error);
  } finally {
    clearTimeout(timer);
  }
}

function faultIn(error: unknown): string | undefined {
  if (!(error instanceof DBOSError))
    return `${(error as Error)?.name ?? typeof error}: ${String((error as Error)?.message)}`;
  return undefined;
}

async function launch(dialect: TestDialect): Promise<Surface> {
  const { DBOS, url } = await createEngine(dialect);
  const workflow = DBOS.registerWorkflow(async () => 1, { name: 'workflow' });
  const inWorkflow = workflowRunner(DBOS);
  await DBOS.launch();
  await DBOS.registerQueue('q', { concurrency: 1 });
  await DBOS.createSchedule({
    scheduleName: 'kept',
    workflowFn: workflow as () => Promise<never>,
    schedule: '0 0 1 1 *',
  });
  const client = await DBOSClient.create({ systemDatabaseUrl: url, logger: silentLogger });
  onTestFinished(() => client.destroy());
  await DBOS.startWorkflow(workflow, { workflowID: 'ended' })().then((handle) => handle.getResult());
  return { DBOS, workflow, client, inWorkflow };
}

async function expectRefused(rows: readonly Row[]): Promise<void> {
  const faults: string[] = [];
  for (const [argument, kind, call] of rows) {
    const isOptional = argument.endsWith('(optional)');
    const wrong = Object.entries(WRONG[kind]).filter(([name]) => name !== 'null' || !isOptional);
    const all = isOptional ? wrong : [...wrong, ['undefined', undefined] as const];
    for (const [name, value] of all) {
      const fault = await faultOf(argument, call, value);
      if (fault !== undefined) faults.push(`${argument} = ${name}: ${fault}`);
    }
  }
  expect(faults).toEqual([]);
}

const SURFACES: Readonly<Record<string, (surface: Surface) => Row[]>> = {
  'the engine': engineRows,
  'operations in workflows': workflowRows,
  'the management verbs of DBOS': ({ DBOS }) => managementRows(DBOS),
  'the management verbs of DBOSClient': ({ client }) => managementRows(client),
  'the client': clientRows,
};

forEachDialect((dialect) => {
  test.each(Object.entries(SURFACES))(
    'wrong input of %s is refused with an error of the catalogue',
    async (_, rowsOf) => expectRefused(rowsOf(await launch(dialect))),
  );
});
