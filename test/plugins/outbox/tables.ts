import type { OutboxOptions } from '../../../src/plugins/outbox/outbox-options.js';
import { makeDlqTable, makeStateTable } from '../../../src/plugins/outbox/schema/tables.js';

export const ALL_TABLES: OutboxOptions = { dlqTable: makeDlqTable(), stateTable: makeStateTable() };
