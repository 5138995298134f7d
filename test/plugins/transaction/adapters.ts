// The adapters under test: how each is created, and how a function in its transaction runs a statement.
import { pathToFileURL } from 'node:url';
import type { DBOSInstance } from '../../../src/faces/library/dbos.js';
import type { DBOSDataSource } from '../../../src/plugins/transaction/datasource.js';
import type { MethodDecorator } from '../../../src/run/plugin.js';
import type { DrizzleDataSource } from '../../../src/plugins/transaction/adapters/drizzle.js';
import type { PGTransactionConfig, Row } from '../../../src/plugins/transaction/driver.js';
import type { PrismaLike } from '../../../src/plugins/transaction/adapters/prisma.js';
import { prismaClientPath } from './prisma-client.js';

type Config = PGTransactionConfig & { name?: string };

export interface SourceUnderTest {
  /** Its decorator may be a standard one. */
  readonly source: Omit<DBOSDataSource<Config>, 'transaction'> & { transaction(config?: Config): MethodDecorator };
  /** Runs a statement with the client of the transaction around. */
  readonly run: (text: string) => Promise<readonly Row[]>;
  /** The data source itself, if `source` wraps it. */
  readonly unwrapped?: object;
  /** Closes what the data source leaves open. */
  readonly close?: () => Promise<void>;
}

export interface Adapter {
  readonly dialect: 'postgres' | 'sqlite';
  /** A data source on the database behind the URL. */
  create(url: string, owner: DBOSInstance, folder: string): Promise<SourceUnderTest>;
}

export const ADAPTERS = {
  'node-postgres': {
    dialect: 'postgres',
    async create(url, owner) {
      const { NodePostgresDataSource } = await import('../../../src/plugins/transaction/adapters/node-postgres.js');
      const source = new NodePostgresDataSource('app', { connectionString: url }, { owner });
      return { source, run: async (text) => (await source.client.query<Record<string, unknown>>(text)).rows };
    },
  },
  'better-sqlite3': {
    dialect: 'sqlite',
    async create(url, owner) {
      const { BetterSqlite3DataSource } = await import('../../../src/plugins/transaction/adapters/better-sqlite3.js');
      const source = new BetterSqlite3DataSource('app', pathOf(url), { owner });
      const run = async (text: string): Promise<Row[]> => {
        const statement = source.client.prepare<[], Row>(text);
        if (statement.reader) return statement.all();
        statement.run();
        return [];
      };
      return { source, run };
    },
  },
  postgres: {
    dialect: 'postgres',
    async create(url, owner) {
      const { PostgresDataSource } = await import('../../../src/plugins/transaction/adapters/postgres.js');
      const source = new PostgresDataSource('app', url, { owner });
      return { source, run: async (text) => source.client.unsafe<Row[]>(text) };
    },
  },
  knex: {
    dialect: 'postgres',
    async create(url, owner) {
      const { KnexDataSource } = await import('../../../src/plugins/transaction/adapters/knex.js');
      const source = new KnexDataSource('app', { client: 'pg', connection: url }, { owner });
      return { source, run: async (text) => (await source.client.raw<{ rows: Row[] }>(text)).rows };
    },
  },
  kysely: {
    dialect: 'postgres',
    async create(url, owner) {
      const { KyselyDataSource } = await import('../../../src/plugins/transaction/adapters/kysely.js');
      const { sql } = await import('kysely');
      const source = new KyselyDataSource<object>('app', { connectionString: url }, { owner });
      return { source, run: async (text) => (await sql.raw<Row>(text).execute(source.client)).rows };
    },
  },
  drizzle: {
    dialect: 'postgres',
    async create(url, owner) {
      const { DrizzleDataSource } = await import('../../../src/plugins/transaction/adapters/drizzle.js');
      const { sql } = await import('drizzle-orm');
      const source = new DrizzleDataSource('app', { connectionString: url }, {}, { owner });
      return {
        source: withReadOnly(source),
        unwrapped: source,
        run: async (text) => (await source.client.execute<Record<string, unknown>>(sql.raw(text))).rows,
      };
    },
  },
  prisma: {
    dialect: 'postgres',
    async create(url, owner, folder) {
      const { PrismaDataSource } = await import('../../../src/plugins/transaction/adapters/prisma.js');
      const { PrismaPg } = await import('@prisma/adapter-pg');
      const { PrismaClient } = (await import(pathToFileURL(prismaClientPath(folder)).href)) as {
        PrismaClient: new (options: object) => PrismaLike & { $disconnect(): Promise<void> };
      };
      const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
      const source = new PrismaDataSource('app', () => prisma, { owner });
      const run = async (text: string): Promise<Row[]> => source.client.$queryRawUnsafe<Row[]>(text);
      return { source, run, close: () => prisma.$disconnect() };
    },
  },
  documented: {
    dialect: 'postgres',
    async create(url, owner) {
      const { ConnectingDataSource } = await import('../../../examples/datasource/connecting-data-source.js');
      const source = new ConnectingDataSource('app', url, { owner });
      return { source, run: async (text) => (await source.client.query<Record<string, unknown>>(text)).rows };
    },
  },
  typeorm: {
    dialect: 'postgres',
    async create(url, owner) {
      const { TypeOrmDataSource } = await import('../../../src/plugins/transaction/adapters/typeorm.js');
      const source = TypeOrmDataSource.createFromConfig('app', { connectionString: url }, [], { owner });
      return { source, run: async (text) => source.entityManager.query<Row[]>(text) };
    },
  },
  'kysely-sqlite': {
    dialect: 'sqlite',
    async create(url, owner) {
      const { KyselySqliteDataSource } = await import('../../../src/plugins/transaction/adapters/kysely-sqlite.js');
      const { sql } = await import('kysely');
      const source = new KyselySqliteDataSource<object>('app', pathOf(url), { owner });
      return { source, run: async (text) => (await sql.raw<Row>(text).execute(source.client)).rows };
    },
  },
  'drizzle-sqlite': {
    dialect: 'sqlite',
    async create(url, owner) {
      const { DrizzleSqliteDataSource } = await import('../../../src/plugins/transaction/adapters/drizzle-sqlite.js');
      const { sql } = await import('drizzle-orm');
      const source = new DrizzleSqliteDataSource('app', pathOf(url), {}, { owner });
      const run = async (text: string): Promise<Row[]> => {
        if (/^SELECT/.test(text)) return source.client.all<Row>(sql.raw(text));
        source.client.run(sql.raw(text));
        return [];
      };
      return { source, run };
    },
  },
} satisfies Record<string, Adapter>;

export type AdapterName = keyof typeof ADAPTERS;

function pathOf(url: string): string {
  return url.replace('sqlite:///', '');
}

/** Drizzle has its own word for what only reads. */
function withReadOnly(source: DrizzleDataSource): SourceUnderTest['source'] {
  const worded = <Config extends { readOnly?: boolean }>(config?: Config) =>
    config && { ...config, accessMode: config.readOnly ? ('read only' as const) : undefined };
  return {
    name: source.name,
    runTransaction: (callback, config) => source.runTransaction(callback, worded(config)),
    registerTransaction: (func, config) => source.registerTransaction(func, worded(config)),
    transaction: (config) => source.transaction(worded(config)),
    get client() {
      return source.client;
    },
  } as SourceUnderTest['source'];
}
