// Which rows of a table are new, and how far the reading has come.
//
// Rows get their number or time when they are written, but become visible when their transaction commits: row 6 may be
// there before row 5. So a row is taken as soon as it is seen, but the position does not pass it before all transactions
// have ended that ran when it was taken. What was taken beyond the position is remembered and not taken twice.
import type { Position } from '../adapter.js';

export interface TableOptions {
  readonly table: string;
  readonly schema?: string;
  /** The columns that identify a row. */
  readonly keyColumns: readonly string[];
  /** A column of whole numbers that grow with each insert, or also with each update. */
  readonly sequenceColumn?: string;
  /** Instead of a number: the time of the insert or update. */
  readonly timestampColumn?: string;
  /** How far before the position to look again: numbers (100 unless given), or milliseconds (60,000 unless given). */
  readonly overlap?: number;
}

/** A row, with what it is ordered by: its number, or its time in microseconds. */
export interface FoundRow {
  readonly key: readonly (string | null)[];
  readonly mark: bigint;
  readonly record: Readonly<Record<string, unknown>>;
  /** Transactions before this one may have run when the row was taken. */
  readonly horizon: bigint;
}

const SEQUENCE_OVERLAP = 100;
const TIME_OVERLAP_MS = 60_000;
/** Rows that are remembered; with more, those that need not be are forgotten, and the others waited for. */
const TAKEN_MAX = 10_000;

export function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

export function tableName({ schema, table }: Pick<TableOptions, 'schema' | 'table'>): string {
  return schema === undefined ? quote(table) : `${quote(schema)}.${quote(table)}`;
}

/**
 * `$1` is the mark to begin with, `$2` how many rows to give, `$3` the IDs of those that were taken. `columnType` is the
 * type of the column that rows are ordered by.
 */
export function selectRows(options: TableOptions, columnType: string): string {
  const { keyColumns, sequenceColumn, timestampColumn } = options;
  const column = `t.${quote(sequenceColumn ?? timestampColumn ?? '')}`;
  const isTime = sequenceColumn === undefined;
  const mark = isTime ? `(EXTRACT(EPOCH FROM ${column}) * 1000000)::bigint` : `${column}::bigint`;
  const epoch = columnType.includes('without') ? "timestamp 'epoch'" : "timestamptz 'epoch'";
  // The column itself is compared, so that its index is used.
  const begin = isTime ? `${epoch} + $1::bigint * interval '1 microsecond'` : '$1::bigint';
  const key = `ARRAY[${keyColumns.map((name) => `t.${quote(name)}::text`).join(', ')}]::text[]`;
  return `
    SELECT array_to_json(${key}) AS key, ${mark}::text AS mark, row_to_json(t)::text AS record,
      pg_snapshot_xmin(pg_current_snapshot())::text AS running,
      pg_snapshot_xmax(pg_current_snapshot())::text AS horizon
    FROM ${tableName(options)} AS t
    WHERE ($1::bigint IS NULL OR ${column} >= ${begin}) AND ${column} IS NOT NULL
      AND array_to_string(${key} || ${mark}::text, '|', '') <> ALL($3::text[])
    ORDER BY ${column}, ${key}
    LIMIT $2`;
}

export function rowID({ key, mark }: Pick<FoundRow, 'key' | 'mark'>): string {
  return [...key.map((part) => part ?? ''), mark].join('|');
}

/** Where the reading is. */
export class Progress {
  readonly #isTime: boolean;
  readonly #overlap: bigint;
  /** Rows that were taken and would be found again. */
  readonly #taken = new Map<string, FoundRow>();
  /** The first transaction that may still run. */
  #running = 0n;
  #position: bigint | undefined;
  /** Rows before this mark were forgotten. */
  #floor: bigint | undefined;

  constructor({ sequenceColumn, overlap }: TableOptions, position: Position | undefined) {
    this.#isTime = sequenceColumn === undefined;
    this.#overlap = BigInt(
      this.#isTime ? Math.ceil(1000 * (overlap ?? TIME_OVERLAP_MS)) : Math.ceil(overlap ?? SEQUENCE_OVERLAP),
    );
    this.#position = position?.value === undefined ? undefined : BigInt(position.value);
  }

  /** The parameters of `selectRows`. */
  parameters(max: number): unknown[] {
    return [this.#begin()?.toString() ?? null, max, [...this.#taken.keys()]];
  }

  /** Whether more rows can be taken. */
  get hasRoom(): boolean {
    return this.#taken.size < TAKEN_MAX;
  }

  /** Notes rows that were found, before they have become workflows. */
  find(rows: readonly FoundRow[], running: bigint): void {
    this.#running = running;
    for (const row of rows) this.#taken.set(rowID(row), row);
  }

  /** What to store when all that was found has become workflows. */
  get position(): Position | undefined {
    const mark = this.#settledMark();
    if (mark === undefined) return undefined;
    return { value: mark.toString(), ...(this.#isTime ? { updateTime: Number(mark) / 1000 } : { updateSeq: mark }) };
  }

  /** All that was found has become workflows. */
  advance(): void {
    this.#position = this.#settledMark() ?? this.#position;
    const begin = this.#begin();
    for (const [id, row] of this.#taken) {
      if (begin !== undefined && row.mark < begin) this.#taken.delete(id);
    }
    for (const [id, row] of this.#taken) {
      if (this.#taken.size < TAKEN_MAX) break;
      if (row.horizon > this.#running) continue;
      this.#floor = row.mark;
      this.#taken.delete(id);
    }
  }

  #begin(): bigint | undefined {
    if (this.#position === undefined) return undefined;
    const begin = this.#position - this.#overlap;
    return this.#floor !== undefined && this.#floor > begin ? this.#floor : begin;
  }

  /** The greatest mark that lies before all rows that are not settled, beyond the position. */
  #settledMark(): bigint | undefined {
    const rows = [...this.#taken.values()];
    const least = rows
      .filter(({ horizon }) => horizon > this.#running)
      .reduce<bigint | undefined>((min, { mark }) => (min === undefined || mark < min ? mark : min), undefined);
    return rows
      .map(({ mark }) => mark)
      .filter((mark) => least === undefined || mark < least)
      .reduce<bigint | undefined>((max, mark) => (max === undefined || mark > max ? mark : max), this.#position);
  }
}
