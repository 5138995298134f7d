// Tracks which rows of a table are new, and how far the table has been read.
//
// A row gets its number or time when it is written, but becomes visible when its transaction commits: row 6 may appear
// before row 5. So a row is taken as soon as it is visible, but the position does not pass it until all transactions
// that were running at that time have ended. Rows taken beyond the position are remembered, so that none is taken twice.
import type { Position } from '../adapter.js';

export interface TableOptions {
  readonly table: string;
  readonly schema?: string;
  /** The columns that identify a row. */
  readonly keyColumns: readonly string[];
  /** An integer column that increases with each insert, and with each update if those count too. */
  readonly sequenceColumn?: string;
  /** Instead of a sequence: the time of the insert or update. */
  readonly timestampColumn?: string;
  /** How far before the position to read again. Default: 100 for a sequence, 60000 (milliseconds) for a timestamp. */
  readonly overlap?: number;
}

/** A row. `mark` is what rows are ordered by: the number, or the time in microseconds. */
export interface FoundRow {
  readonly key: readonly (string | null)[];
  readonly mark: bigint;
  readonly record: Readonly<Record<string, unknown>>;
  /** Only transactions before this ID can have been running when the row was taken. */
  readonly horizon: bigint;
}

const SEQUENCE_OVERLAP = 100;
const TIME_OVERLAP_MS = 60_000;
/** Rows to remember. With more, settled ones are forgotten, and reading waits for the others to settle. */
const TAKEN_MAX = 10_000;

export function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

export function tableName({ schema, table }: Pick<TableOptions, 'schema' | 'table'>): string {
  return schema === undefined ? quote(table) : `${quote(schema)}.${quote(table)}`;
}

/**
 * `$1` is the first mark, `$2` the limit, `$3` the IDs of rows that were already taken. `columnType` is the type of the
 * column that rows are ordered by.
 */
export function selectRows(options: TableOptions, columnType: string): string {
  const { keyColumns, sequenceColumn, timestampColumn } = options;
  const column = `t.${quote(sequenceColumn ?? timestampColumn ?? '')}`;
  const isTime = sequenceColumn === undefined;
  const mark = isTime ? `(EXTRACT(EPOCH FROM ${column}) * 1000000)::bigint` : `${column}::bigint`;
  const epoch = columnType.includes('without') ? "timestamp 'epoch'" : "timestamptz 'epoch'";
  // Compare the bare column, so that its index is used.
  const begin = isTime ? `${epoch} + $1::bigint * interval '1 microsecond'` : '$1::bigint';
  const key = `ARRAY[${keyColumns.map((name) => `t.${quote(name)}::text`).join(', ')}]::text[]`;
  return `
    SELECT array_to_json(${key}) AS key, ${mark}::text AS mark, row_to_json(t)::text AS record,
      pg_snapshot_xmin(pg_current_snapshot())::text AS running,
      pg_snapshot_xmax(pg_current_snapshot())::text AS horizon
    FROM ${tableName(options)} AS t
    WHERE ($1::bigint IS NULL OR ${column} >= ${begin}) AND ${column} IS NOT NULL
      AND concat_ws('|', ${keyColumns.map(escapedKey).join(', ')}, ${mark}::text) <> ALL($3::text[])
    ORDER BY ${column}, ${key}
    LIMIT $2`;
}

/** The separator is escaped in the parts: the keys (a|b, c) and (a, b|c) are two rows. */
export function rowID({ key, mark }: Pick<FoundRow, 'key' | 'mark'>): string {
  return [...key.map((part) => part?.replaceAll(/[\\|]/g, String.raw`\$&`) ?? NULL_KEY), mark].join('|');
}

/** The same in SQL. */
function escapedKey(column: string): string {
  return String.raw`COALESCE(regexp_replace(t.${quote(column)}::text, E'([\\\\|])', E'\\\\\\1', 'g'), E'\\N')`;
}

/** No escaped part is the same. */
const NULL_KEY = String.raw`\N`;

/** How far a table has been read. */
export class Progress {
  readonly #isTime: boolean;
  readonly #overlap: bigint;
  /** Rows that were taken and would be found again, by ID. */
  readonly #taken = new Map<string, FoundRow>();
  /** The oldest transaction that may still be running. */
  #running = 0n;
  #position: bigint | undefined;
  /** Rows up to this mark may have been forgotten: do not read before it. */
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

  /** Whether more rows can be remembered. */
  get hasRoom(): boolean {
    return this.#taken.size < TAKEN_MAX;
  }

  /** Adds rows that were found. They are not workflows yet. */
  addFound(rows: readonly FoundRow[], running: bigint): void {
    this.#running = running;
    for (const row of rows) this.#taken.set(rowID(row), row);
  }

  /** The position to commit together with the workflows of all rows found so far. */
  get position(): Position | undefined {
    const mark = this.#settledMark();
    if (mark === undefined) return undefined;
    return { value: mark.toString(), ...(this.#isTime ? { updateTime: Number(mark) / 1000 } : { updateSeq: mark }) };
  }

  /** All rows found so far are durable as workflows. */
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

  /** The greatest mark before all rows that are not settled, and not below the position. */
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
