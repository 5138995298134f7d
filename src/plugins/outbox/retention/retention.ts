// Keeps the dead letters of an outbox from growing without end: by dropping partitions, or by deleting in batches where
// there are none. It also forgets the expired keys of `once`. Every run does all that is due, so missed runs do no harm.
import type { ClientConfig } from 'pg';
import { InvalidOutboxError } from '../../../kernel/errors/errors.js';
import type { Sql } from '../../../kernel/sql/sql.js';
import { readPartitions } from '../../../database/partitions/partitions.js';
import type { OutboxDatabase } from '../database.js';
import { qualifiedName } from '../schema/ddl.js';
import type { DlqTable, OutboxTables } from '../schema/tables.js';
import { convert, type Converted } from './conversion.js';
import { countBefore, countExpiredKeys, deleteBefore, deleteExpiredKeys } from './deletion.js';
import { type RetentionOptions, type RetentionSettings, retentionSettings } from './options.js';
import { lettersOf, planRotation, rotate } from './rotation.js';
import { inSession, type Session } from './session.js';

export interface PlannedPartition {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly from: number;
  readonly to: number;
}

/** What a run would do. */
export interface RetentionPlan {
  /** How old dead letters go: by dropping partitions, or in batches. */
  readonly mode: 'partitions' | 'batches';
  /** What failed before this time goes; with partitions, when all of its partition did. */
  readonly cutoff: number;
  readonly create: readonly PlannedPartition[];
  readonly drop: readonly PlannedPartition[];
  /** Dead letters that are deleted in batches: all of them, or those in a default partition. */
  readonly delete: number;
  /** Keys of `once` that are forgotten. */
  readonly expiredKeys: number;
}

/** What a run did. */
export interface RetentionReport {
  /** True if another process was at it. */
  readonly skipped: boolean;
  readonly created: readonly string[];
  readonly dropped: readonly string[];
  /** Dead letters that moved out of a default partition. */
  readonly moved: number;
  readonly deleted: number;
  readonly expiredKeys: number;
}

const NOTHING: Omit<RetentionReport, 'expiredKeys'> = {
  skipped: false,
  created: [],
  dropped: [],
  moved: 0,
  deleted: 0,
};

export interface RetentionParts {
  readonly database: OutboxDatabase;
  readonly tables: OutboxTables;
  /** How to connect for statements outside of transactions. */
  readonly config: () => ClientConfig | undefined;
}

export class Retention {
  readonly #parts: RetentionParts;
  readonly #settings: RetentionSettings;

  constructor(parts: RetentionParts, options: RetentionOptions) {
    this.#parts = parts;
    this.#settings = retentionSettings(options);
  }

  /** What a run would do now. Changes nothing. */
  async plan(): Promise<RetentionPlan> {
    const { database, tables } = this.#parts;
    const { state, dlq } = tables;
    return database.connected(async () => {
      const [row] = state ? await database.transact((tx) => tx.run(countExpiredKeys(state)), { readOnly: true }) : [];
      const planned = dlq ? await this.#planLetters(dlq) : undefined;
      const none = {
        mode: 'batches',
        cutoff: this.#settings.cutoffMs(Date.now()),
        create: [],
        drop: [],
        delete: 0,
      } as const;
      return { ...(planned ?? none), expiredKeys: Number(row?.['count'] ?? 0) };
    });
  }

  /** Does all that is due. */
  async run({ onProgress }: { readonly onProgress?: (deleted: number) => void } = {}): Promise<RetentionReport> {
    const { database, tables } = this.#parts;
    const { state, dlq } = tables;
    return database.connected(async () => {
      const expiredKeys = state ? await deleteExpiredKeys((body) => database.transact(body), state) : 0;
      if (!dlq) return { ...NOTHING, expiredKeys };
      if (database.driver.dialect === 'sqlite') {
        const deleted = await this.#deleteOld((body) => database.transact(body), dlq, {
          nowMs: Date.now(),
          onProgress,
        });
        return { ...NOTHING, deleted, expiredKeys };
      }
      const done = await this.#exclusively(dlq, (session) => this.#rotate(session, dlq, onProgress));
      return { ...(done ?? { ...NOTHING, skipped: true }), expiredKeys };
    });
  }

  /** Gives the table partitions, and moves its rows. Needs to happen once, by the owner of the table. Postgres only. */
  async convert(): Promise<Converted> {
    const { database, tables } = this.#parts;
    const dlq = this.#required(tables.dlq);
    if (database.driver.dialect === 'sqlite') throw new InvalidOutboxError('SQLite has no partitions.');
    const done = await database.connected(() =>
      this.#exclusively(dlq, (session) => convert(session, dlq, this.#settings)),
    );
    if (done) return done;
    throw new InvalidOutboxError('Another process changes the partitions. Try again when it is done.');
  }

  async #planLetters(dlq: DlqTable): Promise<Omit<RetentionPlan, 'expiredKeys'>> {
    const { database } = this.#parts;
    if (database.driver.dialect === 'sqlite') return this.#planBatches(dlq, Date.now());
    const session = { run: (statement: Sql) => database.transact((tx) => tx.run(statement), { readOnly: true }) };
    const live = this.#found(await readPartitions(session, lettersOf(dlq)), dlq);
    if (!live.isPartitioned) return this.#planBatches(dlq, live.nowMs);
    const rotation = await planRotation(session, dlq, { live, settings: this.#settings });
    const planned = ({ tableName: name, fromMs: from, toMs: to }: (typeof rotation.create)[number]) => ({
      name,
      from,
      to,
    });
    return {
      mode: 'partitions',
      cutoff: rotation.cutoffMs,
      create: rotation.create.map(planned),
      drop: rotation.drop.map(planned),
      delete: rotation.expiredInDefault,
    };
  }

  async #planBatches(dlq: DlqTable, nowMs: number): Promise<Omit<RetentionPlan, 'expiredKeys'>> {
    const { database } = this.#parts;
    const cutoff = this.#settings.cutoffMs(nowMs);
    const [row] = await database.transact((tx) => tx.run(countBefore(dlq, cutoff)), { readOnly: true });
    return { mode: 'batches', cutoff, create: [], drop: [], delete: Number(row?.['count']) };
  }

  async #rotate(
    session: Session,
    dlq: DlqTable,
    onProgress: ((deleted: number) => void) | undefined,
  ): Promise<Omit<RetentionReport, 'expiredKeys'>> {
    const settings = this.#settings;
    const live = this.#found(await readPartitions(session, lettersOf(dlq)), dlq);
    if (!live.isPartitioned) {
      const deleted = await this.#deleteOld(session.transact, dlq, { nowMs: live.nowMs, onProgress });
      return { ...NOTHING, deleted };
    }
    const rotation = await planRotation(session, dlq, { live, settings });
    return { ...NOTHING, ...(await rotate(session, dlq, { live, rotation, settings })) };
  }

  #deleteOld(
    transact: Session['transact'],
    dlq: DlqTable,
    { nowMs, onProgress }: { readonly nowMs: number; readonly onProgress: ((deleted: number) => void) | undefined },
  ): Promise<number> {
    const { cutoffMs, archive } = this.#settings;
    return deleteBefore(transact, {
      table: dlq,
      beforeMs: cutoffMs(nowMs),
      archive,
      ...(onProgress && { onProgress }),
    });
  }

  #exclusively<T>(dlq: DlqTable, body: (session: Session) => Promise<T>): Promise<T | undefined> {
    const { database, config } = this.#parts;
    return inSession(database, { config: config(), lock: qualifiedName(dlq) }, body);
  }

  #required(dlq: DlqTable | undefined): DlqTable {
    if (dlq) return dlq;
    throw new InvalidOutboxError(
      'The outbox keeps no dead letters. Pass dlqTable: makeDlqTable() to the OutboxBroker.',
    );
  }

  #found<T>(live: T | undefined, dlq: DlqTable): T {
    if (live) return live;
    throw new InvalidOutboxError(`There is no table ${qualifiedName(dlq)}.`);
  }
}
