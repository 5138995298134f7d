// The export format, shared with DBOS: one object per workflow, with rows by table name and values by column name. As text
// it is JSON lines; a JSON array is read as well.
import { storableText } from '../../kernel/base/storable-text.js';
import { WorkflowImportError } from '../../kernel/errors/errors.js';
import { filledName } from '../../kernel/check/validation.js';
import { type WorkflowStatusString, StatusString } from '../../kernel/workflow/status.js';
import { type Transferred, TRANSFERRED, type TransferredTable } from './transfer.sql.js';

/** A row, by column name. */
export type ExportedRow = Readonly<Record<string, unknown>>;

/** A workflow with all its data. */
export interface ExportedWorkflow {
  readonly workflow_status: ExportedRow;
  readonly operation_outputs: readonly ExportedRow[];
  readonly workflow_events: readonly ExportedRow[];
  readonly workflow_events_history: readonly ExportedRow[];
  readonly streams: readonly ExportedRow[];
  /** Messages sent to it. DBOS omits them. */
  readonly notifications?: readonly ExportedRow[];
  /** What its history has beyond the other tables, in order. DBOS and older versions omit it. */
  readonly journal?: readonly ExportedRow[];
}

type PartTable = Exclude<TransferredTable, 'workflow_status'>;
const PARTS = Object.keys(TRANSFERRED).filter((name): name is PartTable => name !== 'workflow_status');

/** Defaults for columns that rows of older versions or other libraries lack. */
const DEFAULTS: Readonly<Record<string, unknown>> = {
  priority: 0,
  rate_limited: false,
  is_debounced: false,
  was_forked_from: false,
  recovery_attempts: 0,
  function_name: '',
  consumed: false,
};
/** Columns that must not be null. */
const REQUIRED = [
  'workflow_uuid',
  'status',
  'name',
  'created_at',
  'updated_at',
  'function_id',
  'key',
  'value',
  'offset',
];
const REQUIRED_OF_MESSAGES = ['message_uuid', 'destination_uuid', 'message', 'created_at_epoch_ms'];
const REQUIRED_OF_EVENTS = ['workflow_id', 'at', 'event_type'];

function requiredIn(name: TransferredTable): readonly string[] {
  if (name === 'notifications') return REQUIRED_OF_MESSAGES;
  return name === 'journal' ? REQUIRED_OF_EVENTS : REQUIRED;
}

export function toExported(transferred: Transferred): ExportedWorkflow {
  const parts = PARTS.map((name) => [name, transferred[name].map((record) => exportRow(name, record))]);
  return {
    workflow_status: exportRow('workflow_status', transferred.workflow_status),
    ...(Object.fromEntries(parts) as Omit<ExportedWorkflow, 'workflow_status'>),
  };
}

function exportRow(name: TransferredTable, record: object): ExportedRow {
  const columns = TRANSFERRED[name].columns.map((column) => {
    const value = (record as Record<string, unknown>)[column.field];
    return [column.name, column.type === 'json' ? parsed(value) : value];
  });
  return Object.fromEntries(columns) as ExportedRow;
}

/** JSON columns are exported as JSON. Invalid JSON stays text. */
function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

/** Reads an exported workflow. `imported` is the number imported before it, for the error. */
export function fromExported(exported: unknown, imported: number): Transferred {
  if (!isObject(exported) || !isObject(exported['workflow_status'])) {
    throw new WorkflowImportError(
      'An exported workflow must be an object with a workflow_status.',
      undefined,
      imported,
    );
  }
  const given = exported['workflow_status']['workflow_uuid'];
  const workflowID = typeof given === 'string' ? given : undefined;
  const refuse = (problem: string): never => {
    const which = workflowID === undefined ? 'a workflow' : `workflow "${workflowID}"`;
    throw new WorkflowImportError(`Cannot import ${which}: ${problem}.`, workflowID, imported);
  };
  const problem = filledName.find(given);
  if (problem !== undefined) refuse(`its ID ${problem.says}`);
  const status = importRow('workflow_status', exported['workflow_status'], refuse);
  if (!Object.hasOwn(StatusString, status['status'] as WorkflowStatusString)) refuse('its status is unknown');
  const parts = PARTS.map((name) => {
    const list = exported[name] ?? [];
    if (!Array.isArray(list)) return refuse(`${name} must be an array`);
    return [name, list.map((row: unknown) => partOf(name, row, { workflowID: workflowID ?? '', refuse }))] as const;
  });
  // The checks above guarantee that each row has the columns of its table.
  return { workflow_status: status, ...Object.fromEntries(parts) } as unknown as Transferred;
}

type Refuse = (problem: string) => never;

function partOf(
  name: PartTable,
  row: unknown,
  { workflowID, refuse }: { readonly workflowID: string; readonly refuse: Refuse },
): Record<string, unknown> {
  const record = importRow(name, isObject(row) ? row : refuse(`${name} holds something that is no row`), refuse);
  if (record['workflowID'] !== workflowID) refuse(`${name} has a row of another workflow`);
  return record;
}

function importRow(name: TransferredTable, row: ExportedRow, refuse: Refuse): Record<string, unknown> {
  const required = requiredIn(name);
  const given = name === 'workflow_status' ? { ...row, updated_at: row['updated_at'] ?? row['created_at'] } : row;
  const record: Record<string, unknown> = {};
  for (const column of TRANSFERRED[name].columns) {
    const value = given[column.name] ?? DEFAULTS[column.name] ?? null;
    const read = name === 'journal' && column.type === 'json' ? storableDetails(value) : readColumn(value, column.type);
    const isMissing = value === null && required.includes(column.name);
    if (read === undefined || isMissing)
      refuse(`${name}.${column.name} is ${isMissing ? 'missing' : 'of a wrong type'}`);
    record[column.field] = read;
  }
  return record;
}

/** The value for the column; undefined if its type is wrong. Numbers may be strings, as some drivers return them. */
function readColumn(value: unknown, type: string): unknown {
  if (value === null) return null;
  if (type === 'text') return typeof value === 'string' && !value.includes('\0') ? value : undefined;
  if (type === 'bool') return typeof value === 'boolean' ? value : undefined;
  if (type === 'json') return jsonText(value);
  const number = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(number) ? number : undefined;
}

function jsonText(value: unknown): string | undefined {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return isObject(parsed(text)) && !text.includes('\\u0000') ? text : undefined;
}

/** SQLite keeps characters that Postgres does not. An event must not prevent the import. */
function storableDetails(value: unknown): string | null | undefined {
  if (value === null) return null;
  const details = parsed(value);
  return isObject(details) ? storableText(details) : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The workflows as JSON lines. */
export async function* toLines(exported: AsyncIterable<ExportedWorkflow>): AsyncGenerator<string, void, undefined> {
  for await (const one of exported) yield `${JSON.stringify(one)}\n`;
}

/** Workflows, or chunks of text: JSON lines or one JSON array. */
export type ExportSource =
  Iterable<ExportedWorkflow | string | Uint8Array> | AsyncIterable<ExportedWorkflow | string | Uint8Array>;

/** Longer lines do not fit into a string. */
const LINE_MAX = 400_000_000;

/** The workflows of a source, one by one. Of JSON lines, only one is held in memory at a time. */
export async function* readSource(source: ExportSource): AsyncGenerator<unknown, void, undefined> {
  const decoder = new TextDecoder();
  const line = new Line();
  let isArray: boolean | undefined;
  for await (const chunk of source) {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) {
      yield chunk;
      continue;
    }
    const text = typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
    const start = text.trimStart();
    if (start !== '') isArray ??= start.startsWith('[');
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0 && !isArray; end = text.indexOf('\n', from)) {
      line.add(text.slice(from, end));
      from = end + 1;
      const whole = line.take();
      if (whole.trim() !== '') yield parseText(whole);
    }
    line.add(text.slice(from));
  }
  line.add(decoder.decode());
  const rest = line.take();
  if (rest.trim() === '') return;
  const last = parseText(rest);
  if (Array.isArray(last)) yield* last as unknown[];
  else yield last;
}

/** A line that arrives in parts. Joins them once, so that a long line costs no more than its length. */
class Line {
  #parts: string[] = [];
  #length = 0;

  add(part: string): void {
    this.#length += part.length;
    if (this.#length > LINE_MAX) {
      throw new WorkflowImportError(`A line is longer than ${LINE_MAX} characters.`, undefined, 0);
    }
    this.#parts.push(part);
  }

  take(): string {
    const whole = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return whole;
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new WorkflowImportError('The text to import must be lines of JSON or a JSON array.', undefined, 0, { cause });
  }
}
