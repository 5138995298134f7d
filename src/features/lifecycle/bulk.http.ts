// Routes that change many workflows at once. They have their own path, so that no workflow ID can be mistaken for a verb.
import { forkFromFailure, forkWorkflows } from './forks.js';
import { cancelWorkflows, deleteWorkflows, resumeWorkflows } from './lifecycle.js';
import { garbageCollect, globalTimeout } from '../retention/retention.js';
import { type Route, route } from '../../faces/http/http/route.js';
import { boolean, integer, INT_MAX, optional, record } from '../../kernel/check/validation.js';
import { nonEmpty, listOf } from '../../faces/http/shape.js';
import {
  changeReason,
  deletionReason,
  forkFields,
  queueTarget,
  replacementChildren,
  someWorkflows,
} from './workflow-actions.http.js';

const tag = 'Many workflows';
export const workflowIDs = listOf(nonEmpty, { min: 1 });

export const BULK_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/bulk/cancel',
    tag,
    summary: 'Cancels active workflows and returns their IDs. Others do not change.',
    body: record({ workflowIDs, cancelChildren: optional(boolean), ...changeReason }),
    result: someWorkflows,
    async handle({ operator, body: { workflowIDs: ids, ...options } }) {
      return { workflowIDs: await cancelWorkflows(operator, ids, options) };
    },
  }),
  route({
    method: 'POST',
    path: '/bulk/resume',
    tag,
    summary:
      'Resumes workflows that have no result or error yet, and returns their IDs. All must exist, or none is resumed.',
    body: record({ workflowIDs, ...queueTarget, ...changeReason }),
    result: someWorkflows,
    async handle({ operator, body: { workflowIDs: ids, ...options } }) {
      return { workflowIDs: await resumeWorkflows(operator, ids, options) };
    },
  }),
  route({
    method: 'POST',
    path: '/bulk/delete',
    tag,
    summary: 'Deletes workflows with all their data, and returns the IDs of those that existed.',
    body: record({ workflowIDs, deleteChildren: optional(boolean), ...deletionReason }),
    result: someWorkflows,
    async handle({ operator, body: { workflowIDs: ids, ...options } }) {
      return { workflowIDs: await deleteWorkflows(operator, ids, options) };
    },
  }),
  route({
    method: 'POST',
    path: '/bulk/fork',
    tag,
    summary: 'Forks workflows: all of them, or none if one does not exist or an ID is in use.',
    body: record({
      forks: listOf(
        record({
          workflowID: nonEmpty,
          startStep: integer({ max: INT_MAX }),
          newWorkflowID: optional(nonEmpty),
        }),
        { min: 1 },
      ),
      ...forkFields,
      ...changeReason,
      replacementChildren,
    }),
    status: 201,
    result: someWorkflows,
    async handle({ operator, body: { forks, ...settings } }) {
      return { workflowIDs: await forkWorkflows(operator, forks, settings) };
    },
  }),
  route({
    method: 'POST',
    path: '/bulk/fork-from-failure',
    tag,
    summary:
      'Forks workflows from where each failed, or from another step. Pass exactly one of the fields that select the step.',
    body: record({
      workflowIDs,
      fromLastFailure: optional(boolean.about('The last failed step, or the last step if none failed.')),
      fromLastStep: optional(boolean),
      fromStep: optional(integer({ max: INT_MAX })),
      fromStepName: optional(nonEmpty.about('The last step of this name.')),
      ...forkFields,
      ...changeReason,
    }),
    status: 201,
    result: someWorkflows,
    async handle({ operator, body: { workflowIDs: ids, ...options } }) {
      return { workflowIDs: await forkFromFailure(operator, ids, options) };
    },
  }),
];

const MAINTENANCE = 'Maintenance';

export const MAINTENANCE_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/maintenance/garbage-collect',
    tag: MAINTENANCE,
    summary: 'Deletes old workflows that have ended, in small commits. Pass a cutoff, a number to keep, or both.',
    body: record({
      cutoffEpochTimestampMs: optional(integer().about('Older workflows are deleted.')),
      rowsThreshold: optional(integer({ min: 1 }).about('The number of newest workflows to keep.')),
      batchSize: optional(integer({ min: 1, max: 10_000 })),
    }),
    result: record({ workflows: integer(), orphans: integer() }),
    handle: ({ operator, body }) => garbageCollect(operator, body),
  }),
  route({
    method: 'POST',
    path: '/maintenance/global-timeout',
    tag: MAINTENANCE,
    summary: 'Cancels all active workflows created at the cutoff or earlier.',
    body: record({ cutoffEpochTimestampMs: integer() }),
    result: record({ cancelled: integer() }),
    async handle({ operator, body }) {
      return { cancelled: await globalTimeout(operator, body.cutoffEpochTimestampMs) };
    },
  }),
];
