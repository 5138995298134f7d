// A process that measures transactions of DBOS with one of its published data sources. Those were published before
// DBOS 5.3 dropped two functions that they use at launch, so the two are put back.
import { createRequire } from 'node:module';
import type { Library } from '../engine/library.js';
import {
  checkSchemaInstallationPG,
  createTransactionCompletionSchemaPG,
  createTransactionCompletionTablePG,
} from '../../src/plugins/transaction/completion-schema.js';
import {
  IN_FLIGHT,
  INSERT,
  type Insert,
  measureTransactions,
  type TransactionCommand,
} from './transaction-commands.js';

interface DataSource {
  readonly client: { raw(text: string): Promise<unknown>; unsafe(text: string): Promise<unknown> };
  runTransaction<T>(callback: () => Promise<T>, config: { name: string }): Promise<T>;
}

const command = JSON.parse(process.argv[2] ?? '') as TransactionCommand;
// Installed in bench/node_modules only, so the compiler cannot look for it.
const load = createRequire(process.argv[3] ?? '');
const { DBOS } = load('@dbos-inc/dbos-sdk') as { DBOS: Library };
Object.assign(load('@dbos-inc/dbos-sdk/datasource') as object, {
  checkSchemaInstallationPG,
  createTransactionCompletionSchemaPG,
  createTransactionCompletionTablePG,
});

function create(name: string, config: object): DataSource {
  const module = load(`@dbos-inc/${command.adapter}-datasource`) as Record<
    string,
    new (...args: unknown[]) => DataSource
  >;
  const Source = module[name];
  if (!Source) throw new Error(`${name} is not installed`);
  return new Source('app', config);
}

function inserting(): Insert {
  if (command.adapter === 'knex') {
    const knex = create('KnexDataSource', { client: 'pg', connection: command.url, pool: { max: IN_FLIGHT } });
    return () => knex.runTransaction(async () => void (await knex.client.raw(INSERT)), { name: 'insert' });
  }
  const { hostname: host, port, username, password, pathname } = new URL(command.url);
  const database = pathname.slice(1);
  const login = { host, port: Number(port), username, password, database, max: IN_FLIGHT, onnotice: () => {} };
  const postgres = create('PostgresDataSource', login);
  return () => postgres.runTransaction(async () => void (await postgres.client.unsafe(INSERT)), { name: 'insert' });
}

await measureTransactions(DBOS, command, inserting());
