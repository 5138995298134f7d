// Routes for applications, versions and executors, and for the interface itself.
import { LIBRARY_VERSION } from '../../../kernel/base/version.js';
import { renameApplication } from '../../../features/version/applications.js';
import {
  getLatestApplicationVersion,
  listApplicationVersions,
  setLatestApplicationVersion,
} from '../../../features/version/versions.js';
import { countOpenWork, countRunning } from '../../../features/listing/open-work.sql.js';
import { listExecutors } from '../../../features/liveness/executors.sql.js';
import { executorView, versionView, viewExecutor } from '../../../features/queue/queue-view.http.js';
import { notFound, Refusal } from '../http/refusal.js';
import { type Route, route } from '../http/route.js';
import { array, boolean, integer, nullable, oneOf, optional, record } from '../../../kernel/check/validation.js';
import { text, nonEmpty, listOf } from '../shape.js';
import { localEngine } from '../source.js';
import { eventResponse } from '../changes/sse.js';
import { status } from '../views/workflow-view.js';

const tag = 'Applications';

const versionWork = record({
  versionName: nullable(text.about('Null for workflows that go to the latest version.')),
  applicationName: nullable(text),
  isLatest: boolean,
  executors: integer().about('Live processes of this version.'),
  enqueued: integer(),
  delayed: integer(),
  running: integer(),
}).named('VersionWork');

const APPLICATION_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/versions',
    tag,
    summary: 'Lists the launched versions of the application, latest first.',
    result: record({ versions: listOf(versionView) }),
    async handle({ operator }) {
      return { versions: await listApplicationVersions(operator) };
    },
  }),
  route({
    method: 'GET',
    path: '/versions/latest',
    tag,
    summary: 'Returns the version that runs workflows without a version.',
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
    summary: 'Sets the latest version.',
    body: record({ versionName: nonEmpty, applicationName: optional(nonEmpty) }),
    result: versionView,
    async handle({ operator, body: { versionName, ...options } }) {
      await setLatestApplicationVersion(operator, versionName, options);
      return getLatestApplicationVersion(operator);
    },
  }),
  route({
    method: 'GET',
    path: '/version-work',
    tag,
    summary: 'Counts work that is left by application version, and the live processes of each.',
    result: record({ versions: listOf(versionWork) }),
    async handle({ operator }) {
      const { database, applicationName } = operator;
      const [latest] = await listApplicationVersions(operator);
      const work = await operator.retrying(() => countOpenWork(database, applicationName));
      const live = (await operator.retrying(() => listExecutors(database))).filter(({ isLeaseOver }) => !isLeaseOver);
      const versions = work.map(({ applicationVersion, ...rest }) => {
        const version = applicationVersion ?? latest?.versionName;
        const executors = live.filter((one) => one.applicationVersion === version).length;
        return { ...rest, versionName: applicationVersion, isLatest: version === latest?.versionName, executors };
      });
      return { versions };
    },
  }),
  route({
    method: 'POST',
    path: '/applications/rename',
    tag,
    summary: 'Renames an application and everything that belongs to it. Stop all processes of both names first.',
    body: record({
      oldName: optional(nonEmpty.about('If omitted, only rows of no application are moved.')),
      newName: nonEmpty,
      batchSize: optional(nullable(integer({ min: 1 }).about('Null moves everything in a single commit.'))),
      adoptUnclaimedRows: optional(boolean.about('Also moves rows that belong to no application.')),
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
    summary: 'Lists executors, including dead ones that have not been cleaned up yet.',
    query: { isAlive: optional(boolean.about('Only executors with a valid lease, or without one.')) },
    result: record({ executors: listOf(executorView) }),
    async handle({ operator, query }) {
      const records = await operator.retrying(() => listExecutors(operator.database));
      const running = await operator.retrying(() => countRunning(operator.database));
      const executors = records.map((one) => viewExecutor(one, running));
      return { executors: executors.filter(({ isAlive }) => isAlive === (query.isAlive ?? isAlive)) };
    },
  }),
  route({
    method: 'POST',
    path: '/executors/{executorID}/recover',
    tag,
    summary: 'Puts the running workflows of a dead executor back into their queues.',
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
    summary: 'Describes the process that serves this interface.',
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
    summary: 'Streams changes of workflows and queues as Server-Sent Events.',
    query: {
      status: optional(listOf(status)),
      queueName: optional(listOf(nonEmpty)),
      workflowName: optional(listOf(nonEmpty)),
      workflowID: optional(listOf(nonEmpty)),
    },
    mediaType: 'text/event-stream',
    async handle({ operator, environment, request, query, access }) {
      const lastID = Number(request.headers.get('last-event-id') ?? '');
      const since = Number.isSafeInteger(lastID) && lastID > 0 ? lastID : undefined;
      const endsAt = access?.session?.expiresAt;
      return eventResponse({ feed: environment.feed, clock: operator.clock, filters: query, since, endsAt });
    },
  }),
];

export const SYSTEM_ROUTES: readonly Route[] = [...APPLICATION_ROUTES, ...INTERFACE_ROUTES];
