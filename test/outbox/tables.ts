import type { OutboxOptions } from '../../src/outbox/outbox-options.js';
import { makeDlqTable, makeStateTable } from '../../src/outbox/schema/tables.js';

export const ALL_TABLES: OutboxOptions = { dlqTable: makeDlqTable(), stateTable: makeStateTable() };
