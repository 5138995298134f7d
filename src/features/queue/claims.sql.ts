// Claims workflows from a queue. A claim is one statement: it computes the headroom, picks the next rows, takes ownership
// of them, and returns what is needed to run them.
//
// If a limit applies across processes, a lock serialises claims: each sees what earlier ones claimed, so the
// count is exact. Without such a limit they run concurrently and skip rows that others have locked.
import { CLASS_NAME_ESCAPES } from '../../kernel/workflow/function-key.js';
import { DURATION_MAX_MS } from '../../kernel/check/durations.js';
import { DatabaseStatementError } from '../../kernel/errors/errors.js';
import { type Limits, UNLIMITED } from './queue.js';
import { lock, nowMs, oneOf, type Sql, sql, table, textConstants } from '../../kernel/sql/sql.js';
import {
  type ClaimRemainder,
  effectiveLimit,
  isUnlimited,
  notedHeadroom,
  noteHeadroom,
  remainderStatement,
  type Scope,
  type Share,
  toRemainder,
} from './claim-limits.sql.js';
import { commitClaims } from './claim-lock.sql.js';
import { isLockedOut, othersWork, remainderAfterLockout, spareOf } from './foreign-claims.sql.js';
import { workflowColumns } from '../../database/columns.js';
import type { Database, Row } from '../../database/database.js';
import { holdsEngineToken } from '../../run/rows/owner-tokens.js';
import { unindexed } from '../../run/rows/states.js';

export interface ClaimOptions {
  readonly queueName: string;
  readonly limit: number;
  /** A fresh fencing token for the claimed workflows. */
  readonly owner: string;
  readonly executorID: string;
  readonly applicationVersion: string;
  readonly applicationName: string;
  /** The functions registered here, by their `functionKey`. Other rows are left to other engines. */
  readonly functions: readonly string[];
  /** The configured instances registered here, as `class/instance`. Other rows are left to other engines. */
  readonly instances?: readonly string[];
  /** The formats that can be read here. Rows in others are left to other programs. Default: all. */
  readonly formats?: readonly string[];
  /** Limits of the queue across all processes. */
  readonly limits?: Limits;
  /** Limits the claim to an even share of the queue. */
  readonly share?: Share;
  /** Takes slots that it is the turn of other programs to take: they have not. */
  readonly isInsisting?: boolean;
}

export type ClaimedWorkflow = ReturnType<typeof claimedColumns.toRecord>;

export interface Claimed {
  readonly workflow: ClaimedWorkflow;
  /** Whether an earlier run wrote checkpoints. */
  readonly hasSteps: boolean;
}

/** A workflow that cannot be claimed because of what its row holds. */
export interface RefusedRow {
  readonly workflowID: string;
  readonly serialization: string | null;
  readonly cause: DatabaseStatementError;
}

export interface Claim {
  readonly claimed: readonly Claimed[];
  readonly refused?: readonly RefusedRow[];
  readonly remainder: ClaimRemainder;
  /** Of a partition: whether the queue had a slot for it when it was its turn. */
  readonly hadRoom?: boolean;
}

const workflows = table('workflow_status');
/** What is needed of a row to run it. A claim returns hundreds, and each column costs as much as a small object. */
const claimedColumns = workflowColumns.only(
  'workflowID',
  'name',
  'className',
  'configName',
  'inputs',
  'serialization',
  'authenticatedUser',
  'assumedRole',
  'authenticatedRoles',
  'createdAt',
  'deadlineAt',
  'queueName',
  'queuePartitionKey',
  'priority',
  'isDebounced',
  'recoveryAttempts',
  'owner',
  'creator',
);
const returned = claimedColumns.returning;
const isStillEnqueued = unindexed(sql`status = 'ENQUEUED'`);
const longest = sql`CAST(${DURATION_MAX_MS} AS BIGINT)`;
/** The end of a parked wait is no delay that somebody asked for. Only a workflow that was parked has a token on its queue. */
const delayOfClaimed = sql`CASE WHEN ${holdsEngineToken(sql`owner_xid`)} THEN NULL ELSE delay_until_epoch_ms END`;
const NOTHING_IN_THE_WAY = { hasRoom: true, waitMs: null, hasPartitionRoom: true, partitionWaitMs: null } as const;

/** Claims up to `limit` workflows of the queue, by priority, then creation. */
export async function claimWorkflows(database: Database, options: ClaimOptions): Promise<Claim> {
  const scope: Scope = { queueName: options.queueName, whole: options.limits ?? UNLIMITED };
  try {
    return await claimTogether(database, options, scope);
  } catch (error) {
    if (isLockedOut(error)) return { claimed: [], remainder: remainderAfterLockout() };
    if (!isDataError(error)) throw error;
    return claimOneByOne(database, options, { scope, limit: options.limit });
  }
}

async function claimTogether(database: Database, options: ClaimOptions, scope: Scope): Promise<Claim> {
  const { limit, owner } = options;
  const isPostgres = database.dialect.name === 'postgres';
  const isAlone = isUnlimited(scope);
  const bounds = isPostgres && !isAlone && !options.isInsisting ? [spareOf(scope)] : [];
  const statement = claimStatement(options, scope, { limit, bounds });
  if (isAlone && !options.share) {
    const [rows = []] = await database.commit([statement]);
    const claimed = rows.map(toClaimed);
    return { claimed, remainder: { ...NOTHING_IN_THE_WAY, isWaiting: claimed.length >= limit } };
  }
  const statements = [statement, remainderStatement(scope, isPostgres && !isAlone ? othersWork(scope) : undefined)];
  const [claimed = [], remainder = []] = isAlone
    ? await database.commit(statements)
    : await commitClaims(database, { owner, scope, statements });
  return { claimed: claimed.map(toClaimed), remainder: toRemainder(remainder[0]) };
}

export interface PartitionClaimOptions extends Omit<ClaimOptions, 'limit' | 'share'> {
  readonly partitionLimits: Limits;
  /** The partitions to claim from, in this order, each with its limit. */
  readonly partitions: readonly { readonly key: string; readonly limit: number }[];
}

/** Claims from several partitions of a queue in one commit. Returns one claim per partition. */
export async function claimPartitions(database: Database, options: PartitionClaimOptions): Promise<Claim[]> {
  const { queueName, limits: whole = UNLIMITED, partitionLimits } = options;
  const parts = options.partitions.map(({ key, limit }): ScopeLimit => {
    return { scope: { queueName, whole, partition: { key, limits: partitionLimits } }, limit };
  });
  try {
    return await claimPartitionsTogether(database, options, parts);
  } catch (error) {
    if (isLockedOut(error)) return parts.map(() => ({ claimed: [], remainder: remainderAfterLockout() }));
    if (!isDataError(error)) throw error;
    const claims: Claim[] = [];
    for (const part of parts) claims.push(await claimOneByOne(database, options, part));
    return claims;
  }
}

async function claimPartitionsTogether(
  database: Database,
  options: PartitionClaimOptions,
  parts: readonly ScopeLimit[],
): Promise<Claim[]> {
  const { owner, queueName, limits: whole = UNLIMITED } = options;
  const scope = { queueName, whole };
  const isPostgres = database.dialect.name === 'postgres';
  // On SQLite no slot is freed during a commit.
  const isNoting = database.dialect.hasSettings && !isUnlimited(scope);
  const total = parts.reduce((sum, { limit }) => sum + limit, 0);
  const spare = isPostgres && !options.isInsisting ? [spareOf(scope)] : [];
  const notes = isNoting ? [noteHeadroom(scope, total, spare)] : [];
  const bounds = isNoting ? [notedHeadroom(owner)] : [];
  const statements = parts.flatMap((part) => [
    claimStatement(options, part.scope, { limit: part.limit, bounds }),
    remainderStatement(part.scope, isPostgres ? othersWork(part.scope) : undefined),
  ]);
  const results = await commitClaims(database, { owner, scope, statements: [...notes, ...statements] });
  const [noted] = results.splice(0, notes.length);
  let headroom = noted && Number(noted[0]?.['headroom']);
  return parts.map((_, index) => {
    const claimed = (results[2 * index] ?? []).map(toClaimed);
    const remainder = toRemainder(results[1 + 2 * index]?.[0]);
    const hadRoom = headroom === undefined ? remainder.hasRoom : headroom > 0;
    if (headroom !== undefined) headroom -= claimed.length;
    return { claimed, remainder, hadRoom };
  });
}

interface ScopeLimit {
  readonly scope: Scope;
  readonly limit: number;
}

type Terms = Omit<ClaimOptions, 'limit'>;

/** A value in a row is out of range for the statement. Other failures are not the fault of a row. */
function isDataError(error: unknown): error is DatabaseStatementError {
  return error instanceof DatabaseStatementError && error.sqlState?.startsWith('22') === true;
}

/** For a claim that failed because of one of its rows, which it does not name. */
async function claimOneByOne(database: Database, options: Terms, { scope, limit }: ScopeLimit): Promise<Claim> {
  const claimed: Claimed[] = [];
  const refused: RefusedRow[] = [];
  const found = await database.read(sql`
    WITH ${picked(options, scope, { limit })}
    SELECT picked.id, picked.format FROM picked`);
  for (const row of found) {
    const workflowID = row['id'] as string;
    const statement = claimStatement({ ...options, share: undefined }, scope, { limit: 1, onlyID: workflowID });
    try {
      const [rows = []] = await commitClaims(database, { owner: options.owner, scope, statements: [statement] });
      claimed.push(...rows.map(toClaimed));
    } catch (cause) {
      if (isLockedOut(cause)) break;
      if (!isDataError(cause)) throw cause;
      refused.push({ workflowID, serialization: row['format'] as string | null, cause });
    }
  }
  return { claimed, refused, remainder: await findRemainder(database, scope) };
}

/** What a claim could still take from a queue or partition at the moment. */
export async function findRemainder(database: Database, scope: Scope): Promise<ClaimRemainder> {
  const [row] = await database.read(remainderStatement(scope));
  return toRemainder(row);
}

/** As in `functionKey`. */
const escapedClassName = CLASS_NAME_ESCAPES.reduce(
  (text, [from, to]) => sql`REPLACE(${text}, ${textConstants([from])}, ${textConstants([to])})`,
  sql`COALESCE(w.class_name, '')`,
);

interface Picking {
  readonly limit: number;
  /** Picks this workflow only, if it may be claimed. */
  readonly onlyID?: string;
  /** Skips what others have locked, and locks the rest. */
  readonly isLocking?: boolean;
  /** Other bounds on how many. */
  readonly bounds?: readonly Sql[];
}

/**
 * The rows that a claim takes, as the CTE `picked`. Rows of this version and rows without one are found in two branches, each
 * in the order of its index: a backlog of another version, or of one millisecond, costs nothing. CTEs are materialized so
 * that the planner does not pick again for each row.
 */
function picked(options: Terms, scope: Scope, picking: Picking): Sql {
  return sql`
    room AS MATERIALIZED (SELECT ${effectiveLimit(scope, { ...picking, share: options.share })} AS n),
    versioned AS MATERIALIZED (
      ${waitingRows(options, scope, picking)} AND COALESCE(w.application_version, '') = ${options.applicationVersion}
      ${inClaimOrder(picking)}),
    unversioned AS MATERIALIZED (
      ${waitingRows(options, scope, picking)} AND COALESCE(w.application_version, '') = ''
        AND w.application_version IS NULL AND ${isLatest(options)}
      ${inClaimOrder(picking)}),
    picked AS MATERIALIZED (
      SELECT c.id, c.format
      FROM (SELECT * FROM versioned UNION ALL SELECT * FROM unversioned) AS c
      ORDER BY c.rank, c.at, c.token, c.id
      LIMIT (SELECT n FROM room))`;
}

function waitingRows(options: Terms, scope: Scope, { onlyID }: Picking): Sql {
  return sql`
    SELECT w.workflow_uuid AS id, w.serialization AS format,
      w.priority AS rank, w.created_at AS at, w.creator_xid AS token
    FROM ${workflows} AS w
    WHERE w.queue_name = ${scope.queueName} AND ${isWaitingIn(scope)}
      AND (w.application_name = ${options.applicationName} OR w.application_name IS NULL)
      AND ${escapedClassName} || '.' || w.name ${oneOf(options.functions)}
      AND (w.config_name IS NULL OR w.config_name = ''
        OR ${escapedClassName} || '/' || w.config_name ${oneOf(options.instances ?? [])})
      ${options.formats ? sql`AND (w.serialization IS NULL OR w.serialization ${oneOf(options.formats)})` : sql``}
      AND (SELECT COUNT(*) FROM ${table('paused_queues')} AS z WHERE z.name = ${scope.queueName}) = 0
      ${onlyID === undefined ? sql`` : sql`AND w.workflow_uuid = ${onlyID}`}`;
}

/** The conditions of idx_workflow_status_claims and idx_workflow_status_partition_claims, which only claims repeat. */
function isWaitingIn({ partition }: Scope): Sql {
  return partition
    ? sql`w.queue_partition_key = ${partition.key} AND
        CASE WHEN w.status = 'ENQUEUED' AND w.queue_partition_key IS NOT NULL THEN TRUE ELSE FALSE END`
    : sql`CASE WHEN w.status = 'ENQUEUED' THEN TRUE ELSE FALSE END`;
}

function inClaimOrder({ isLocking }: Picking): Sql {
  return sql`
    ORDER BY w.priority, w.created_at, w.creator_xid, w.workflow_uuid
    LIMIT (SELECT n FROM room) ${isLocking ? lock('skip', 'w') : sql``}`;
}

export function claimStatement(options: Terms, scope: Scope, picking: Picking): Sql {
  const isRateLimited = scope.whole.rate !== null || (scope.partition?.limits.rate ?? null) !== null;
  // The outer condition hides the status from the planner, or it would walk the queue again for each picked row. A timeout
  // is cut to what can be added to a time: one row that overflows would fail the claim of all.
  return sql`
    WITH ${picked(options, scope, { ...picking, isLocking: true })}
    UPDATE ${workflows}
    SET status = 'PENDING', owner_xid = ${options.owner}, executor_id = ${options.executorID},
      application_version = ${options.applicationVersion},
      application_name = COALESCE(application_name, ${options.applicationName}),
      started_at_epoch_ms = ${nowMs}, updated_at = ${nowMs}, recovery_attempts = recovery_attempts + 1,
      rate_limited = ${isRateLimited}, delay_until_epoch_ms = ${delayOfClaimed},
      workflow_deadline_epoch_ms = COALESCE(workflow_deadline_epoch_ms, ${nowMs} + CASE
        WHEN workflow_timeout_ms > ${longest} THEN ${longest} ELSE workflow_timeout_ms END)
    FROM picked
    WHERE workflow_uuid = picked.id AND ${isStillEnqueued}
    RETURNING ${returned},
      CASE WHEN EXISTS (
        SELECT 1 FROM ${table('operation_outputs')} AS s WHERE s.workflow_uuid = workflow_status.workflow_uuid
      ) THEN 1 ELSE 0 END AS has_steps`;
}

/** Only the latest version may claim rows without a version. */
function isLatest(options: Pick<ClaimOptions, 'applicationVersion' | 'applicationName'>): Sql {
  return sql`${options.applicationVersion} = (
    SELECT v.version_name
    FROM ${table('application_versions')} AS v
    WHERE v.application_name = ${options.applicationName} OR v.application_name IS NULL
    ORDER BY v.version_timestamp DESC, v.version_id DESC
    LIMIT 1)`;
}

export function toClaimed(row: Row): Claimed {
  return {
    workflow: claimedColumns.toRecord(row),
    hasSteps: row['has_steps'] === 1,
  };
}

/** The order in which a claim takes workflows from a queue. */
export function compareClaimOrder(a: ClaimedWorkflow, b: ClaimedWorkflow): number {
  const byTime = a.priority - b.priority || a.createdAt - b.createdAt;
  if (byTime !== 0) return byTime;
  const [first, second] = [a.creator ?? a.workflowID, b.creator ?? b.workflowID];
  return first < second ? -1 : 1;
}

/** Inputs that other libraries store in a separate table, by workflow ID. */
export async function findSeparateInputs(
  database: Database,
  workflowIDs: readonly string[],
): Promise<Map<string, string>> {
  const found = await database.read(sql`
    SELECT i.workflow_uuid, i.inputs
    FROM ${table('workflow_input')} AS i
    WHERE i.workflow_uuid ${oneOf(workflowIDs)}`);
  return new Map(found.map((row) => [row['workflow_uuid'] as string, row['inputs'] as string]));
}
