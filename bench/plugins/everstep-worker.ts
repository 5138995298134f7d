// A process that measures transactions of Everstep on node-postgres.
import { NodePostgresDataSource } from '../../src/plugins/transaction/adapters/node-postgres.js';
import { DBOS } from '../../src/faces/library/dbos.js';
import { IN_FLIGHT, INSERT, measureTransactions, type TransactionCommand } from './transaction-commands.js';

const command = JSON.parse(process.argv[2] ?? '') as TransactionCommand;
const source = new NodePostgresDataSource('app', { connectionString: command.url, max: IN_FLIGHT });

await measureTransactions(DBOS, command, () =>
  source.runTransaction(async () => (await source.client.query(INSERT)).rowCount, { name: 'insert' }),
);
