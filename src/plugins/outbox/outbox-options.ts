// The options of an outbox.
import type { ClientConfig } from 'pg';
import { checkThat, func, optional, record } from '../../kernel/check/validation.js';
import type { ErrorRenderer } from './dead-letters/failure.js';
import type { DlqTable, OutboxTable, StateTable } from './schema/tables.js';

export interface OutboxOptions {
  /** Default: `makeOutboxTable()`. */
  readonly outboxTable?: OutboxTable;
  /** Turns dead letters on. Without it, messages that cannot be handled are deleted. */
  readonly dlqTable?: DlqTable;
  /** Turns on paused topics and the deduplication mode `once`. */
  readonly stateTable?: StateTable;
  /** How `pg` connects to listen. Default: as the data source, where it says how. False: only poll. */
  readonly listen?: string | ClientConfig | false;
  /** Renders errors for dead letters. Return null to keep nothing of them. */
  readonly renderError?: ErrorRenderer;
}

const tableOf = (maker: string) =>
  checkThat<never>(`made by ${maker}`, (value) => typeof value === 'object' && value !== null && 'columns' in value);
export const OUTBOX_OPTIONS = record({
  outboxTable: optional(tableOf('makeOutboxTable')),
  dlqTable: optional(tableOf('makeDlqTable')),
  stateTable: optional(tableOf('makeStateTable')),
  listen: optional(
    checkThat<never>(
      'a URL, a configuration of pg, or false',
      (value) => value === false || typeof value !== 'boolean',
    ),
  ),
  renderError: optional(func),
});
