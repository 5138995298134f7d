// Programs written for DBOS find on Everstep what they find on DBOS. Each program runs once on every target.
import { expect, test } from 'vitest';
import { compare, Differs } from './targets.js';

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
    'own handle of a parent that did not catch': {
      own: awaitedCancelled,
      status: 'ERROR',
      stored: { class: 'Error', code: 27 },
    },
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
