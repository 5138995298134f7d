// Programs written for DBOS find on Everstep what they find on DBOS. Each program runs once on every target.
import { expect, test, vi } from 'vitest';
import { compare, Differs } from './targets.js';

// Each test runs four processes, and DBOS polls.
vi.setConfig({ testTimeout: 120_000 });

const cancelled = { class: 'DBOSWorkflowCancelledError', code: 24 };
const awaitedCancelled = { class: 'DBOSAwaitedWorkflowCancelledError', code: 27 };

test('outcomes', async () => {
  await compare('outcomes', {
    'own handle of a cancelled workflow': cancelled,
    'direct call of a cancelled workflow': cancelled,
    'retrieved handle of a cancelled workflow': awaitedCancelled,
    'DBOS.getResult of a cancelled workflow': awaitedCancelled,
    'handle of an enqueued workflow that was cancelled': awaitedCancelled,
    'second start under the ID of a cancelled workflow': awaitedCancelled,
    'own handle of a timed-out workflow': cancelled,
    'direct call of a timed-out workflow': cancelled,
    'a child that is called': cancelled,
    'a child that is started': cancelled,
    'a child that is retrieved': awaitedCancelled,
    'own handle of a parent that did not catch': new Differs(
      { own: awaitedCancelled, status: 'ERROR', stored: awaitedCancelled },
      {
        'dbos-4': { own: awaitedCancelled, status: 'ERROR', stored: { class: 'Error', code: 27 } },
        'dbos-5': { own: awaitedCancelled, status: 'ERROR', stored: { class: 'Error', code: 27 } },
      },
    ),
    'a dead letter': { class: 'DBOSMaxRecoveryAttemptsExceededError', code: 18 },
    'a dead letter, retrieved': { class: 'DBOSAwaitedWorkflowExceededMaxRecoveryAttempts', code: 30 },
    'a parent whose child inherits its deadline': [{ own: cancelled, status: 'CANCELLED' }],
    'a step that resolves while its workflow is cancelled': new Differs([1, 1, 1], {
      // May repeat the step.
      'dbos-4': expect.any(Array),
      'dbos-5': expect.any(Array),
    }),
  });
});

const conflict = 'DBOSConflictingRegistrationError';
const refusedPlace = { class: 'DBOSInvalidWorkflowTransitionError', code: 21 };

test('registration', async () => {
  const methodOf = (result: string) => ({ result, className: 'Shop', configName: 'corner' });
  const registered = {
    'two steps of one name': 'accepted',
    'a workflow and a step of one name': 'accepted',
    'a step and a workflow of one name': 'accepted',
    'two workflows of one name': conflict,
    'a function that is a workflow twice': 'accepted',
  };
  const once = { ...registered, 'a function that is a workflow twice': conflict };
  await compare('registration', {
    registration: new Differs(registered, { 'dbos-5': once, 'dbos-4': once }),
    'anonymous steps': [1, 2],
    'an instance method registered with its class': ['corner pen', methodOf('corner ink')],
    'an enqueued instance method registered with its class': methodOf('corner ink'),
    'an instance method registered with its prototype': ['corner packs pen', methodOf('corner packs ink')],
    'a function registered with a class before it is a method': ['corner sells pen', methodOf('corner sells ink')],
    'an instance method on another object': refusedPlace,
    'a static method': ['audits books', { result: 'audits books', className: 'Shop', configName: '' }],
    'work for another application': { application_name: 'other', application_version: null },
    'work for another application, of a version': { application_name: 'other', application_version: 'v9' },
    'work for this application': { application_name: 'compat', application_version: 'v1' },
    'debounced work for another application': { application_name: 'other', application_version: null },
    // DBOS 4 refused it.
    'a step where an ID is assigned': new Differs(['none', true], { 'dbos-4': { failed: refusedPlace } }),
    'a step run where an ID is assigned': new Differs('ran', { 'dbos-4': { failed: refusedPlace } }),
  });
});

test('required roles', async () => {
  const refused = { class: 'DBOSNotAuthorizedError', code: 12 };
  const ofOwner = { none: refused, clerk: refused, owner: { returned: 'owner' } };
  const expected = {
    'a role above the workflow': ofOwner,
    'a role below the workflow': ofOwner,
    'a step outside a workflow': ofOwner,
    'a plain method': { none: refused, clerk: { returned: 'clerk' }, owner: { returned: 'owner' } },
    'inner methods': {
      none: { returned: [refused, refused] },
      clerk: { returned: [{ returned: 'clerk' }, refused] },
      owner: { returned: [{ returned: 'owner' }, { returned: 'owner' }] },
    },
  };
  await compare('roles', expected, (target) => target !== 'dbos-5');
});

test('koa-serve', async () => {
  const known = { classConfig: {}, defaults: 'Shop' };
  const tooLong = "Argument note of order is marked as type 'varchar' with maximum length 5 but has length 12";
  const expected = {
    'a plain method': [200, 'hello ann, GET /hello/ann'],
    'a workflow': [200, 'workflow pen new'],
    'a workflow under an ID': [[200, 'workflow ink x'], 'SUCCESS'],
    'a missing argument': [400, 'Missing required argument item of order'],
    'an argument that is too long': [400, tooLong],
    'a renamed argument': [200, 'x'],
    'a required role': [403, 'User does not have a role with permission to call vault'],
    'what the plugin knows': [
      { name: 'hello', ...known, parameters: ['who'], types: [null] },
      { name: 'order', ...known, parameters: ['item', 'note'], types: [null, 'varchar(5)'] },
      { name: 'renamed', ...known, parameters: ['given'], types: [null] },
      { name: 'vault', ...known, parameters: [], types: [] },
    ],
  };
  await compare('koa', expected, (target) => target !== 'dbos-5');
});

test('members that programs expect', async () => {
  /** Only DBOS 4 has it. */
  const gone = (value: unknown) => new Differs(value, { 'dbos-5': expect.anything() });
  const plain = { class: 'DBOSError', code: 1 };
  /** Ours is more specific. */
  const ours = (value: unknown) => new Differs(value, { 'dbos-5': plain, 'dbos-4': plain });
  await compare('surface', {
    exports: gone(['function', 'function', 'number', 'function', 'function']),
    'a second alert handler': ours({ class: 'DBOSConflictingRegistrationError', code: 25 }),
    'an alert handler after the launch': ours({ class: 'DBOSAlreadyLaunchedError', code: 1 }),
    'clearing the registry while launched': 'refused',
    'the format of a portable workflow': gone('portable'),
    'the format of another workflow': 'undefined',
    'the format of the context': gone('portable'),
    'the request object': gone([{ url: '/x' }, true]),
    'DBOS.request': gone(['/x', '/x']),
    'DBOS.request outside of requests': new Differs(refusedPlace, { 'dbos-4': plain, 'dbos-5': expect.anything() }),
    'an empty ID for the next workflow': gone(9),
    'queues bound to a client': [false, true],
    // Not public there.
    'recovery by hand': new Differs([['lost'], 'recovered'], { 'dbos-5': 'missing', 'dbos-4': 'missing' }),
  });
});

test('running workflows', async () => {
  const plainCall = ['undefined', 7];
  await compare('running', {
    'its own status': 'PENDING',
    'its own handle': 'PENDING',
    'itself in a list': ['PENDING'],
    'its own stream': [1, 2],
    'polling for a result': true,
    'polling for the first of several': true,
    'a function that is not async, as a step': new Differs(['function', 7], {
      'dbos-5': plainCall,
      'dbos-4': plainCall,
    }),
    'a stream of a workflow that does not exist': { class: 'DBOSNonExistentWorkflowError', code: 16 },
    'what a shutdown waits for': ['parent', 'child', 'grandchild'],
  });
});

test('details', async () => {
  const peers = (common: unknown, theirs: unknown) => new Differs(common, { 'dbos-5': theirs, 'dbos-4': theirs });
  const refusedQueue = { class: 'InvalidQueueError', code: 1 };
  const rate = (limitPerPeriod: number, periodSec: number) => ({ returned: { limitPerPeriod, periodSec } });
  await compare('details', {
    'a direct run': peers(
      { executor_id: 'this', status: 'SUCCESS', started: 'set' },
      { executor_id: 'this', status: 'SUCCESS', started: null },
    ),
    'an enqueued row': { started_at_epoch_ms: null, executor_id: 'this', status: 'DELAYED' },
    'defaults of a queue': new Differs([true, false, null, null], {
      'dbos-5': [null, null, null, null],
      'dbos-4': [false, false, null, null],
    }),
    'no worker': peers(refusedQueue, { returned: 0 }),
    'no concurrency': peers(refusedQueue, { returned: 0 }),
    'a rate of zero': peers(refusedQueue, rate(0, 1)),
    'a period of zero': peers(refusedQueue, rate(1, 0)),
    'settings of partitions': new Differs([true, 3, 2, null, null, 3], { 'dbos-5': expect.anything() }),
    'a batch in a partition': ['b2', 'b1', 'b3', 'b0'],
    'all entries of streams': peers({ open: [1], closed: [2] }, 'missing'),
    // DBOS 5 no longer knows them.
    'a temporary send that was left': new Differs(['SUCCESS', ['greetings']], { 'dbos-5': ['PENDING', []] }),
    'two classes of one name': { class: 'DBOSConflictingRegistrationError', code: 25 },
    'a missing database': { class: 'DBOSInitializationError', code: 3 },
  });
});
