// Declares the tables of an outbox: columns, indexes and checks, in both dialects. The DDL, the check of a live schema and
// the statements follow these declarations.
//
// `outbox` and `outbox_dlq` are those of faststream-outbox, with columns and indexes of our own behind theirs. Each of
// those has a default or may be NULL, so that programs that do not know them can share the tables.
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import { filledName, messageOf, optional, record } from '../../../kernel/check/validation.js';

export type DialectName = 'postgres' | 'sqlite';

export interface ColumnDeclaration {
  readonly name: string;
  readonly type: Readonly<Record<DialectName, string>>;
  readonly isNullable: boolean;
  /** An expression, as the dialect's catalogue spells it. */
  readonly default?: Readonly<Record<DialectName, string>>;
  /** Whether the database numbers the rows with it. */
  readonly isIdentity?: boolean;
}

export interface IndexDeclaration {
  readonly name: string;
  /** With `DESC`, if a column is sorted downwards. */
  readonly columns: readonly string[];
  readonly isUnique: boolean;
  readonly predicate?: string;
}

export interface CheckDeclaration {
  readonly name: string;
  readonly predicate: string;
}

export interface TableDeclaration {
  readonly tableName: string;
  /** Postgres only. Default: the first schema of the search path. */
  readonly schema: string | undefined;
  readonly columns: readonly ColumnDeclaration[];
  readonly primaryKey: readonly string[];
  readonly indexes: readonly IndexDeclaration[];
  readonly checks: readonly CheckDeclaration[];
}

/** The messages that wait. */
export interface OutboxTable extends TableDeclaration {
  readonly kind: 'outbox';
  /** The channel of its notifications; the payload is the queue. */
  readonly channel: string;
}

/** The dead letters. */
export interface DlqTable extends TableDeclaration {
  readonly kind: 'dlq';
}

/** What the outbox remembers beyond its messages: paused topics, and the keys of `once`. */
export interface StateTable extends TableDeclaration {
  readonly kind: 'state';
}

/** The tables of an outbox. */
export interface OutboxTables {
  readonly outbox: OutboxTable;
  readonly dlq: DlqTable | undefined;
  readonly state: StateTable | undefined;
}

/** Those that were declared, in the order of their creation. */
export function declared({ outbox, dlq, state }: OutboxTables): readonly TableDeclaration[] {
  return [outbox, ...(dlq ? [dlq] : []), ...(state ? [state] : [])];
}

export interface TableOptions {
  readonly tableName?: string;
  readonly schema?: string;
}

/** Postgres cuts longer names off, and two of them could become the same. */
const NAME_BYTES_MAX = 63;

const OPTIONS = record({ tableName: optional(filledName), schema: optional(filledName) });

const both = (text: string): Record<DialectName, string> => ({ postgres: text, sqlite: text });
const time = { postgres: 'TIMESTAMPTZ', sqlite: 'INTEGER' };
const uuid = { postgres: 'UUID', sqlite: 'TEXT' };
const json = { postgres: 'JSONB', sqlite: 'TEXT' };
const bytes = { postgres: 'BYTEA', sqlite: 'BLOB' };
const zero = both('0');
const now = { postgres: 'now()', sqlite: `(CAST(unixepoch('subsec') * 1000 AS INTEGER))` };
const randomUUID = {
  postgres: 'gen_random_uuid()',
  sqlite:
    `(lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || ` +
    `substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))`,
};

type ColumnRest = Omit<ColumnDeclaration, 'name' | 'type' | 'isNullable'>;

function required(name: string, type: ColumnDeclaration['type'], rest: ColumnRest = {}): ColumnDeclaration {
  return { name, type, isNullable: false, ...rest };
}

function nullable(name: string, type: ColumnDeclaration['type']): ColumnDeclaration {
  return { name, type, isNullable: true };
}

const identity = required('id', { postgres: 'BIGINT', sqlite: 'INTEGER' }, { isIdentity: true });
const name255 = both('VARCHAR(255)');

const OUTBOX_COLUMNS: readonly ColumnDeclaration[] = [
  identity,
  required('queue', name255),
  required('payload', bytes),
  nullable('headers', json),
  required('attempts_count', both('BIGINT'), { default: zero }),
  required('deliveries_count', both('BIGINT'), { default: zero }),
  required('created_at', time, { default: now }),
  required('next_attempt_at', time, { default: now }),
  nullable('first_attempt_at', time),
  nullable('last_attempt_at', time),
  nullable('acquired_at', time),
  nullable('acquired_token', uuid),
  nullable('timer_id', name255),
  // Our own.
  required('message_id', uuid, { default: randomUUID }),
  nullable('ordering_key', name255),
  required('priority', both('SMALLINT'), { default: zero }),
  nullable('expires_at', time),
  required('replay_count', both('INTEGER'), { default: zero }),
  nullable('traceparent', name255),
];

const DLQ_COLUMNS: readonly ColumnDeclaration[] = [
  identity,
  required('original_id', both('BIGINT')),
  required('queue', name255),
  required('payload', bytes),
  nullable('headers', json),
  required('deliveries_count', both('BIGINT')),
  required('created_at', time),
  required('failed_at', time, { default: now }),
  required('failure_reason', both('VARCHAR(64)')),
  nullable('last_exception', both('VARCHAR')),
  nullable('timer_id', name255),
  // Our own.
  nullable('message_id', uuid),
  nullable('attempts_count', both('BIGINT')),
  nullable('ordering_key', name255),
  required('priority', both('SMALLINT'), { default: zero }),
  nullable('error_name', name255),
  nullable('error_fingerprint', both('VARCHAR(64)')),
  required('replay_count', both('INTEGER'), { default: zero }),
  nullable('traceparent', name255),
  nullable('archived_at', time),
];

const STATE_COLUMNS: readonly ColumnDeclaration[] = [
  required('queue', name255),
  required('kind', both('VARCHAR(16)')),
  required('key', name255),
  nullable('message_id', uuid),
  nullable('until', time),
];

/** Declares the table of the messages. */
export function makeOutboxTable(options: TableOptions = {}): OutboxTable {
  const { tableName = 'outbox', schema } = OPTIONS.read(options, 'options');
  return checked({
    kind: 'outbox',
    tableName,
    schema,
    channel: `outbox_${tableName}`,
    columns: OUTBOX_COLUMNS,
    primaryKey: ['id'],
    indexes: [
      index(`${tableName}_lease_idx`, ['queue', 'acquired_at'], 'acquired_token IS NOT NULL'),
      index(`${tableName}_pending_idx`, ['queue', 'next_attempt_at'], 'acquired_token IS NULL'),
      { ...index(`${tableName}_timer_id_uq`, ['queue', 'timer_id'], 'timer_id IS NOT NULL'), isUnique: true },
      // Our own. Messages without a key or a priority are not in them.
      index(`${tableName}_key_idx`, ['queue', 'ordering_key', 'id'], 'ordering_key IS NOT NULL'),
      index(
        `${tableName}_urgent_idx`,
        ['queue', 'priority DESC', 'next_attempt_at'],
        '(acquired_token IS NULL) AND (priority > 0)',
      ),
    ],
    checks: [{ name: `${tableName}_lease_ck`, predicate: '(acquired_token IS NULL) = (acquired_at IS NULL)' }],
  });
}

/** Declares the table of the dead letters. */
export function makeDlqTable(options: TableOptions = {}): DlqTable {
  const { tableName = 'outbox_dlq', schema } = OPTIONS.read(options, 'options');
  return checked({
    kind: 'dlq',
    tableName,
    schema,
    columns: DLQ_COLUMNS,
    primaryKey: ['id'],
    indexes: [index(`${tableName}_queue_failed_idx`, ['queue', 'failed_at'])],
    checks: [],
  });
}

/** Declares the table that paused topics and the deduplication mode `once` need. */
export function makeStateTable(options: TableOptions = {}): StateTable {
  const { tableName = 'outbox_state', schema } = OPTIONS.read(options, 'options');
  return checked({
    kind: 'state',
    tableName,
    schema,
    columns: STATE_COLUMNS,
    primaryKey: ['queue', 'kind', 'key'],
    indexes: [],
    checks: [],
  });
}

function index(name: string, columns: readonly string[], predicate?: string): IndexDeclaration {
  return { name, columns, isUnique: false, predicate };
}

function checked<T extends TableDeclaration & { readonly channel?: string }>(table: T): T {
  const derived = [...table.indexes, ...table.checks].map(({ name }) => name);
  for (const name of [table.tableName, table.schema ?? '', table.channel ?? '', ...derived]) {
    if (Buffer.byteLength(name) <= NAME_BYTES_MAX) continue;
    throw new InvalidOutboxError(
      messageOf(
        { at: '', says: `makes the name "${name}", which is longer than ${NAME_BYTES_MAX} bytes`, hint: 'Shorten it.' },
        'tableName',
      ),
    );
  }
  return table;
}
