// Column lists of tables. One list drives the INSERT, the select list and the mapping between rows and records.
import type { StepRecord, WorkflowRecord } from '../kernel/workflow/records.js';
import {
  type ColumnType,
  idents,
  returningList,
  type RowColumn,
  selectList,
  type Token,
  type Value,
} from '../kernel/sql/sql.js';
import type { Row } from './database.js';

interface Column<Record> extends RowColumn {
  readonly field: keyof Record & string;
}

export class TableColumns<Record> {
  readonly columns: readonly Column<Record>[];
  #names: Token | undefined;
  readonly #blank: { readonly [field: string]: unknown };

  /** `spec` lists the field, name and type of each column. */
  constructor(spec: readonly (readonly [field: keyof Record & string, name: string, type: ColumnType])[]) {
    this.columns = spec.map(([field, name, type]) => ({ field, name, type }));
    this.#blank = Object.fromEntries(spec.map(([field]) => [field, null]));
  }

  /** The column names, for an INSERT. Made when first used: tables are declared as modules load. */
  get names(): Token {
    return (this.#names ??= idents(this.columns.map((column) => column.name)));
  }

  /** The list for RETURNING, which allows no alias. JSON comes as text. */
  get returning(): Token {
    return returningList(this.columns);
  }

  /** The columns of a `rows` list, for INSERT … SELECT. */
  pass(alias: string): Token {
    return idents(
      this.columns.map((column) => column.name),
      alias,
    );
  }

  /** All columns but those of the given fields. */
  without<Field extends keyof Record & string>(...fields: readonly Field[]): TableColumns<Omit<Record, Field>> {
    const rest = this.columns.filter(({ field }) => !(fields as readonly string[]).includes(field));
    return new TableColumns<Omit<Record, Field>>(
      rest.map(({ field, name, type }) => [field as Exclude<typeof field, Field>, name, type]),
    );
  }

  /** Only the columns of the given fields. */
  only<Field extends keyof Record & string>(...fields: readonly Field[]): TableColumns<Pick<Record, Field>> {
    const chosen = this.columns.filter(({ field }) => (fields as readonly string[]).includes(field));
    return new TableColumns<Pick<Record, Field>>(chosen.map(({ field, name, type }) => [field as Field, name, type]));
  }

  /** The select list, qualified by a table alias. */
  select(alias: string): Token {
    return selectList(this.columns, alias);
  }

  toValues(record: Record): Value[] {
    return this.columns.map((column) => (record[column.field] ?? null) as Value);
  }

  toRecord(row: Row): Record {
    // Copied: an object to which keys are added is enlarged many times.
    const record: { [field: string]: unknown } = { ...this.#blank };
    for (const column of this.columns) record[column.field] = fromColumn(row[column.name], column.type);
    // The list has every field of the record; a test checks it.
    return record as Record;
  }
}

function fromColumn(value: unknown, type: ColumnType): unknown {
  if (value === null || value === undefined) return null;
  return type === 'bool' ? value === true || value === 1 : value;
}

export const workflowColumns = new TableColumns<WorkflowRecord>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['status', 'status', 'text'],
  ['name', 'name', 'text'],
  ['className', 'class_name', 'text'],
  ['configName', 'config_name', 'text'],
  ['inputs', 'inputs', 'text'],
  ['output', 'output', 'text'],
  ['error', 'error', 'text'],
  ['serialization', 'serialization', 'text'],
  ['authenticatedUser', 'authenticated_user', 'text'],
  ['assumedRole', 'assumed_role', 'text'],
  ['authenticatedRoles', 'authenticated_roles', 'text'],
  ['request', 'request', 'text'],
  ['executorID', 'executor_id', 'text'],
  ['applicationVersion', 'application_version', 'text'],
  ['applicationID', 'application_id', 'text'],
  ['applicationName', 'application_name', 'text'],
  ['createdAt', 'created_at', 'bigint'],
  ['updatedAt', 'updated_at', 'bigint'],
  ['startedAt', 'started_at_epoch_ms', 'bigint'],
  ['completedAt', 'completed_at', 'bigint'],
  ['timeoutMs', 'workflow_timeout_ms', 'bigint'],
  ['deadlineAt', 'workflow_deadline_epoch_ms', 'bigint'],
  ['queueName', 'queue_name', 'text'],
  ['queuePartitionKey', 'queue_partition_key', 'text'],
  ['deduplicationID', 'deduplication_id', 'text'],
  ['priority', 'priority', 'int'],
  ['delayUntil', 'delay_until_epoch_ms', 'bigint'],
  ['isRateLimited', 'rate_limited', 'bool'],
  ['debounceDeadlineAt', 'debounce_deadline_epoch_ms', 'bigint'],
  ['isDebounced', 'is_debounced', 'bool'],
  ['recoveryAttempts', 'recovery_attempts', 'bigint'],
  ['parentWorkflowID', 'parent_workflow_id', 'text'],
  ['forkedFrom', 'forked_from', 'text'],
  ['wasForkedFrom', 'was_forked_from', 'bool'],
  ['scheduleName', 'schedule_name', 'text'],
  ['attributes', 'attributes', 'json'],
  ['owner', 'owner_xid', 'text'],
  ['creator', 'creator_xid', 'text'],
]);

const STEP = [
  ['workflowID', 'workflow_uuid', 'text'],
  ['stepID', 'function_id', 'int'],
  ['name', 'function_name', 'text'],
  ['output', 'output', 'text'],
  ['error', 'error', 'text'],
  ['childWorkflowID', 'child_workflow_id', 'text'],
  ['startedAt', 'started_at_epoch_ms', 'bigint'],
  ['completedAt', 'completed_at_epoch_ms', 'bigint'],
  ['serialization', 'serialization', 'text'],
  ['applicationName', 'application_name', 'text'],
] as const;

/** Those that every system database has. */
export const stepColumns = new TableColumns<StepRecord>(STEP);

/** For engines, which need our migrations. */
export const checkpointColumns = new TableColumns<StepRecord>([...STEP, ['argumentsHash', 'arguments_hash', 'int']]);
