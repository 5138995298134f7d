// The adapter for Postgres tables: a workflow for each row that is inserted, and for updates that change the sequence
// or timestamp. The table is read from the last position on: at the start, after each notification, and at intervals.
import type pg from 'pg';
import { type DurationText, inMs } from '../../../kernel/base/duration.js';
import { sleep } from '../../../kernel/base/clock.js';
import { InvalidReceiverError } from '../../../kernel/errors/errors.js';
import type { Adapter, ConnectContext, ConsumerOptions, Source } from '../adapter.js';
import { type FoundRow, Progress, quote, rowID, selectRows, tableName, type TableOptions } from './postgres-rows.js';
import { checkDuration, Receiver, type ReceiverSettings } from '../receiver.js';
import { PgSession, STAY_OPEN } from '../../../database/postgres/pg-session.js';

/** A row that was inserted or updated. */
export interface PostgresMessage extends FoundRow {
  readonly table: string;
  /** Part of the workflow ID: several functions may read one table. */
  readonly functionName: string;
}

export interface PostgresConsumerOptions extends ConsumerOptions<PostgresMessage>, TableOptions {
  /** Creates a trigger on the table that wakes the receiver. Without it, the table is only polled. Default: false. */
  readonly installTrigger?: boolean;
  /** How often to poll. Default: 30000 with a trigger, 5000 without. */
  readonly pollIntervalMs?: number | DurationText;
}

const OPTION_NAMES = [
  'table',
  'schema',
  'keyColumns',
  'sequenceColumn',
  'timestampColumn',
  'overlap',
  'installTrigger',
  'pollIntervalMs',
] as const;
const POLL_MS = 5_000;
const POLL_WITH_TRIGGER_MS = 30_000;
const CHANNEL = 'everstep_table_changes';

/** Receives rows of tables. The workflow's arguments are `'upsert'`, the values of the key columns and the row. */
export class PostgresReceiver extends Receiver<PostgresMessage, PostgresConsumerOptions> {
  constructor(config: string | pg.ClientConfig, settings?: ReceiverSettings) {
    super(postgresAdapter(config), settings);
  }
}

export function postgresAdapter(config: string | pg.ClientConfig): Adapter<PostgresMessage, PostgresConsumerOptions> {
  return {
    name: 'postgres',
    optionNames: OPTION_NAMES,
    describe: (options) => `table ${tableName(options)}`,
    check: checkOptions,
    workflowIDOf: (message) => `postgres-${message.functionName}-${message.table}-${rowID(message)}`,
    decode: ({ key, record }) => ['upsert', key, record],
    async connect(options, context) {
      const session = new PgSession(config);
      await session.connect();
      try {
        return await openSource(session, options, context);
      } catch (error) {
        await session.end();
        throw error;
      }
    },
  };
}

function checkOptions(options: PostgresConsumerOptions): void {
  const { table, keyColumns, sequenceColumn, timestampColumn } = options;
  checkDuration('pollIntervalMs', options.pollIntervalMs);
  if (keyColumns.length === 0) throw new InvalidReceiverError(`Table "${table}" needs keyColumns that identify a row.`);
  if ((sequenceColumn === undefined) === (timestampColumn === undefined)) {
    throw new InvalidReceiverError(`Table "${table}" needs a sequenceColumn or a timestampColumn, and not both.`);
  }
}

async function openSource(
  session: PgSession,
  options: PostgresConsumerOptions,
  context: ConnectContext,
): Promise<Source<PostgresMessage>> {
  const { rows } = await session.query<{ type: string | null }>(
    'SELECT format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = $1::regclass AND attname = $2',
    [tableName(options), options.sequenceColumn ?? options.timestampColumn],
  );
  if (!rows[0]?.type) {
    throw new InvalidReceiverError(`It has no column "${options.sequenceColumn ?? options.timestampColumn}".`);
  }
  if (options.installTrigger) await session.query(triggerText(options));
  const source = new TableSource(session, {
    options,
    context,
    text: selectRows(options, rows[0].type),
    progress: new Progress(options, await context.loadPosition()),
  });
  await session.ask(STAY_OPEN);
  await session.listen([CHANNEL], () => source.wake());
  return source;
}

/** Notifies once per statement, however many rows it writes. Idempotent. */
function triggerText(options: PostgresConsumerOptions): string {
  const schema = options.schema === undefined ? '' : `${quote(options.schema)}.`;
  const name = quote(`everstep_tell_${options.table}`);
  return `
    CREATE OR REPLACE FUNCTION ${schema}${name}() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_notify('${CHANNEL}', '');
      RETURN NULL;
    END $$;
    CREATE OR REPLACE TRIGGER ${name} AFTER INSERT OR UPDATE ON ${tableName(options)}
      FOR EACH STATEMENT EXECUTE FUNCTION ${schema}${name}();`;
}

interface SourceParts {
  readonly options: PostgresConsumerOptions;
  readonly context: ConnectContext;
  readonly text: string;
  readonly progress: Progress;
}

interface RowText {
  readonly key: (string | null)[];
  readonly mark: string;
  readonly record: string;
  readonly running: string;
  readonly horizon: string;
}

class TableSource implements Source<PostgresMessage> {
  readonly #session: PgSession;
  readonly #parts: SourceParts;
  /** Aborts when there may be new rows. */
  #woken = new AbortController();

  constructor(session: PgSession, parts: SourceParts) {
    this.#session = session;
    this.#parts = parts;
  }

  wake(): void {
    this.#woken.abort();
  }

  async fetch(max: number, signal: AbortSignal): Promise<PostgresMessage[]> {
    for (;;) {
      this.#session.lost.throwIfAborted();
      signal.throwIfAborted();
      this.#woken = new AbortController();
      const found = await this.#readRows(max);
      if (found.length > 0) return found;
      await this.#pause(signal);
    }
  }

  async #readRows(max: number): Promise<PostgresMessage[]> {
    const { options, context, text, progress } = this.#parts;
    if (!progress.hasRoom) await this.#refreshRunning();
    const { rows } = await this.#session.query<RowText>(text, progress.parameters(progress.hasRoom ? max : 0));
    const { functionName } = context;
    const messages = rows.map(({ key, mark, record, horizon }) => ({
      table: options.table,
      functionName,
      key,
      mark: BigInt(mark),
      record: JSON.parse(record) as Record<string, unknown>,
      horizon: BigInt(horizon),
    }));
    if (rows[0]) progress.addFound(messages, BigInt(rows[0].running));
    return messages;
  }

  /** A long transaction keeps all rows since from settling. It may have ended by now. */
  async #refreshRunning(): Promise<void> {
    const { rows } = await this.#session.query<Pick<RowText, 'running'>>(
      'SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS running',
    );
    this.#parts.progress.addFound([], BigInt(rows[0]?.running ?? 0));
    this.#parts.progress.advance();
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { options, context } = this.#parts;
    const pollMs = inMs(options.pollIntervalMs) ?? (options.installTrigger ? POLL_WITH_TRIGGER_MS : POLL_MS);
    await sleep(context.clock, pollMs, AbortSignal.any([signal, this.#session.lost, this.#woken.signal])).catch(() => {
      // Woken early, or stopped. The loop knows which.
    });
  }

  positionAfter() {
    return this.#parts.progress.position;
  }

  async acknowledge(): Promise<void> {
    this.#parts.progress.advance();
  }

  async close(): Promise<void> {
    await this.#session.end();
  }
}
