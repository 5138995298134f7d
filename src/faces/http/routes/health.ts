// Routes about the system database itself: its tables, indexes and health, and what retention would delete.
import { LIBRARY_VERSION } from '../../../kernel/base/version.js';
import {
  createOptionalIndex,
  dropOptionalIndex,
  listOptionalIndexes,
  type OptionalIndex,
} from '../../../features/listing/indexes.js';
import { diagnose } from '../../../features/diagnosis/diagnosis.js';
import { planRetention } from '../../../features/retention/retention-policy.js';
import { OPTIONAL_INDEXES } from '../../../features/listing/index-fields.js';
import { retentionPolicy } from '../../../features/retention/policy.js';
import { anything, boolean, integer, nullable, oneOf, optional, record } from '../../../kernel/check/validation.js';
import { readSchema, schemaOf } from '../dashboard/schema.js';
import { readRequest } from '../http/refusal.js';
import { type Route, route } from '../http/route.js';
import { listOf, text } from '../shape.js';
import { status } from '../views/workflow-view.js';

const tag = 'Maintenance';
const INDEXES = Object.keys(OPTIONAL_INDEXES);

const versions = record({ shared: integer(), everstep: integer() });
const index = record({ index: oneOf(INDEXES).about('The filter that it speeds up.'), isThere: boolean });

const health = record({
  version: text,
  database: oneOf(['postgres', 'sqlite']),
  schema: record({
    versions: versions.about('Of the tables.'),
    neededVersions: versions.about('By this release.'),
    due: integer().about('Migrations that have not run.'),
  }),
  indexes: listOf(index).about('Optional indexes, for lists with these filters.'),
  capabilities: listOf(
    record({ name: text, isAvailable: boolean, without: text.about('What happens without it.') }),
  ).about('What the server has of what Everstep uses; empty for SQLite.'),
  clockAheadMs: integer({ min: Number.MIN_SAFE_INTEGER }).about(
    "How far this process is ahead of the database's clock.",
  ),
  findings: listOf(record({ kind: oneOf(['problem', 'notice']), subject: text, message: text })).about(
    'As everstep doctor reports them.',
  ),
}).named('Health');

const policy = record({
  completed: optional(anything.about('How long workflows that succeeded are kept, such as `30 days`, or in ms.')),
  failed: optional(anything.about('The same for workflows that failed or were cancelled.')),
  perWorkflow: optional(anything.about('The same by the name of a function, instead of the above.')),
}).named('RetentionPolicy');

const planned = record({
  name: nullable(text),
  status,
  workflows: integer(),
  characters: integer().about('Of inputs, outputs and errors.'),
  events: integer().about('Stored events.'),
  oldestEndedAt: integer(),
}).named('PlannedRetention');

export const HEALTH_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/health',
    tag,
    summary: 'Checks the database and everything that runs on it.',
    result: health,
    async handle({ operator }) {
      const { capabilities, clockAheadMs, findings } = await diagnose(operator, schemaOf(operator.database));
      return {
        version: LIBRARY_VERSION,
        database: operator.database.dialect.name,
        schema: await readSchema(operator),
        indexes: await listOptionalIndexes(operator),
        capabilities,
        clockAheadMs,
        findings,
      };
    },
  }),
  route({
    method: 'PUT',
    path: '/indexes/{index}',
    tag,
    summary: 'Builds an optional index. On SQLite, writers wait for it.',
    handle: ({ operator, path }) => createOptionalIndex(operator, indexIn(path)),
  }),
  route({
    method: 'DELETE',
    path: '/indexes/{index}',
    tag,
    summary: 'Drops an optional index.',
    handle: ({ operator, path }) => dropOptionalIndex(operator, indexIn(path)),
  }),
  route({
    method: 'GET',
    path: '/retention',
    tag,
    summary: 'Returns the configured retention.',
    result: record({ policy: nullable(policy), isArchiving: boolean.about('Workflows are archived before.') }),
    async handle({ operator: { retention, archive } }) {
      const { completed, failed, perWorkflow } = retention ?? {};
      return { policy: retention ? { completed, failed, perWorkflow } : null, isArchiving: archive !== undefined };
    },
  }),
  route({
    method: 'POST',
    path: '/retention/plan',
    tag,
    summary: 'Counts what a retention, by default the configured one, would delete now. Deletes nothing.',
    isReading: true,
    body: policy,
    result: record({ plan: listOf(planned) }),
    async handle({ operator, body }) {
      const isGiven = Object.keys(body).length > 0;
      const given = isGiven ? readRequest(retentionPolicy, body, 'The policy') : undefined;
      return { plan: await planRetention(operator, given) };
    },
  }),
];

/** The verb refuses an unknown one. */
function indexIn(path: Readonly<Record<string, string>>): OptionalIndex {
  return path['index'] as OptionalIndex;
}
