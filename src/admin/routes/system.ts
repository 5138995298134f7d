// Routes of applications, their versions and executors, and of the interface itself.
import { LIBRARY_VERSION } from '../../base/version.js';
import { renameApplication } from '../../control/management/applications.js';
import {
  getLatestApplicationVersion,
  listApplicationVersions,
  setLatestApplicationVersion,
} from '../../control/management/versions.js';
import { listPeers } from '../../store/liveness/executors.js';
import { executorView, versionView, viewExecutor } from '../views/queue-view.js';
import { notFound, Refusal } from '../http/refusal.js';
import { type Route, route } from '../http/route.js';
import { array, boolean, integer, nullable, oneOf, optional, record } from '../../model/validation/validation.js';
import { text, nonEmpty, listOf } from '../shape.js';
import { localEngine } from '../source.js';
import { eventAnswer } from '../changes/sse.js';
import { status } from '../views/workflow-view.js';

const tag = 'Applications';

const APPLICATION_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/versions',
    tag,
    summary: 'The versions of the application that were launched, the latest first.',
    result: record({ versions: listOf(versionView) }),
    async handle({ operator }) {
      return { versions: await listApplicationVersions(operator) };
    },
  }),
  route({
    method: 'GET',
    path: '/versions/latest',
    tag,
    summary: 'The version that takes workflows without a version.',
    result: versionView,
    async handle({ operator }) {
      const [latest] = await listApplicationVersions(operator);
      if (!latest) throw notFound('No application version has been launched yet.');
      return latest;
    },
  }),
  route({
    method: 'PUT',
    path: '/versions/latest',
    tag,
    summary: 'Makes a version the latest one.',
    body: record({ versionName: nonEmpty, applicationName: optional(nonEmpty) }),
    result: versionView,
    async handle({ operator, body: { versionName, ...options } }) {
      await setLatestApplicationVersion(operator, versionName, options);
      return getLatestApplicationVersion(operator);
    },
  }),
  route({
    method: 'POST',
    path: '/applications/rename',
    tag,
    summary: 'Gives an application another name, with all that belongs to it. No process of either name should run.',
    body: record({
      oldName: optional(nonEmpty.about('Without one, only what belongs to no application is moved.')),
      newName: nonEmpty,
      batchSize: optional(nullable(integer({ min: 1 }).about('Null moves everything in a single commit.'))),
      adoptUnclaimedRows: optional(boolean.about('Moves what belongs to no application as well.')),
    }),
    result: record({
      queues: integer(),
      schedules: integer(),
      versions: integer(),
      workflows: integer(),
      steps: integer(),
    }),
    handle: ({ operator, body: { oldName, newName, ...options } }) =>
      renameApplication(operator, { oldName, newName }, options),
  }),
  route({
    method: 'GET',
    path: '/executors',
    tag,
    summary: 'The processes that run workflows, and those that did and have not been cleared away yet.',
    query: { isAlive: optional(boolean.about('Only those whose lease is, or is not, valid.')) },
    result: record({ executors: listOf(executorView) }),
    async handle({ operator, query }) {
      const peers = await operator.retrying(() => listPeers(operator.database));
      const executors = peers.map(viewExecutor);
      return { executors: executors.filter(({ isAlive }) => isAlive === (query.isAlive ?? isAlive)) };
    },
  }),
  route({
    method: 'POST',
    path: '/executors/{executorID}/recover',
    tag,
    summary: 'Puts the running workflows of an executor that is gone back into their queues.',
    result: record({ workflowIDs: array(text) }),
    async handle({ environment, path }) {
      const engine = localEngine(environment.source);
      if (!engine) throw new Refusal(409, 'NO_ENGINE', 'Only a process that runs workflows can recover others.');
      return { workflowIDs: await engine.recoverExecutor(path['executorID'] ?? '') };
    },
  }),
];

const INTERFACE = 'This interface';

const INTERFACE_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/info',
    tag: INTERFACE,
    summary: 'Who answers.',
    result: record({
      library: text,
      version: text,
      database: oneOf(['postgres', 'sqlite']),
      applicationName: nullable(text),
      applicationVersion: nullable(text),
      executorID: nullable(text),
    }),
    async handle({ operator, environment }) {
      const engine = localEngine(environment.source);
      return {
        library: 'everstep',
        version: LIBRARY_VERSION,
        database: operator.database.dialect.name,
        applicationName: operator.applicationName,
        applicationVersion: engine?.applicationVersion ?? null,
        executorID: engine?.executorID ?? null,
      };
    },
  }),
  route({
    method: 'GET',
    path: '/events',
    tag: INTERFACE,
    summary: 'Changes of workflows and queues as they happen, as Server-Sent Events.',
    query: {
      status: optional(listOf(status)),
      queueName: optional(listOf(nonEmpty)),
      workflowName: optional(listOf(nonEmpty)),
      workflowID: optional(listOf(nonEmpty)),
    },
    mediaType: 'text/event-stream',
    async handle({ operator, environment, request, query }) {
      const lastID = Number(request.headers.get('last-event-id') ?? '');
      const since = Number.isSafeInteger(lastID) && lastID > 0 ? lastID : undefined;
      return eventAnswer({ feed: environment.feed, clock: operator.clock, filters: query, since });
    },
  }),
];

export const SYSTEM_ROUTES: readonly Route[] = [...APPLICATION_ROUTES, ...INTERFACE_ROUTES];
