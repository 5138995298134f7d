// A data source on Prisma, for Postgres. Prisma generates its client into the application, so it is typed structurally.
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import type { PGIsolationLevel, Row, TransactionDriver } from '../driver.js';
import { type DataSourceOptions, TransactionalDataSource } from '../transactional-data-source.js';

type PrismaIsolationLevel = 'ReadUncommitted' | 'ReadCommitted' | 'RepeatableRead' | 'Serializable';

export interface TransactionConfig {
  isolationLevel?: PGIsolationLevel | PrismaIsolationLevel;
  readOnly?: boolean;
  name?: string;
}

/** The part of a transaction client that the adapter uses. */
export interface PrismaTransactionLike {
  $queryRawUnsafe<T = unknown>(query: string, ...values: never[]): PromiseLike<T>;
  $executeRawUnsafe(query: string, ...values: never[]): PromiseLike<number>;
}

/** The part of a generated client that the adapter uses. */
export interface PrismaLike extends PrismaTransactionLike {
  $transaction<R>(body: (client: never) => Promise<R>, options?: { isolationLevel?: PrismaIsolationLevel }): Promise<R>;
}

type Access<Client> = Client | (() => Client);

export class PrismaDataSource<PrismaClient extends PrismaLike> extends TransactionalDataSource<
  PrismaClient,
  TransactionConfig
> {
  /** `prisma` is a client, or a function that returns it. It stays open at shutdown. */
  constructor(name: string, prisma: Access<PrismaClient>, options?: string | DataSourceOptions) {
    super(name, driverOf(prisma), options);
  }

  /** Creates the completion table, and grants a role access to it. */
  static async initializeDBOSSchema(prisma: PrismaLike, schemaName?: string, applicationRole?: string): Promise<void> {
    await prisma.$transaction((client) =>
      initializeDataSourceSchemaPG((text) => queryWith(client, text, []), schemaName, applicationRole),
    );
  }

  static async uninitializeDBOSSchema(prisma: PrismaLike, schemaName?: string): Promise<void> {
    await prisma.$transaction((client) => removeDataSourceSchemaPG((text) => queryWith(client, text, []), schemaName));
  }
}

function driverOf<Client extends PrismaLike>(prisma: Access<Client>): TransactionDriver<Client> {
  return {
    dialect: 'postgres',
    open: async () => {},
    close: async () => {},
    transact({ isolationLevel, readOnly }, body) {
      const client = typeof prisma === 'function' ? prisma() : prisma;
      const run = async (tx: PrismaTransactionLike): ReturnType<typeof body> => {
        if (readOnly) await tx.$executeRawUnsafe('SET TRANSACTION READ ONLY');
        // A transaction client is a client without the methods that open transactions.
        return body(tx as unknown as Client);
      };
      return client.$transaction(run, isolationLevel && { isolationLevel: NAMES[isolationLevel] });
    },
    query: queryWith,
  };
}

const NAMES: Readonly<Record<PGIsolationLevel, PrismaIsolationLevel>> = {
  'READ UNCOMMITTED': 'ReadUncommitted',
  'READ COMMITTED': 'ReadCommitted',
  'REPEATABLE READ': 'RepeatableRead',
  SERIALIZABLE: 'Serializable',
};

async function queryWith(
  client: PrismaTransactionLike,
  text: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  return client.$queryRawUnsafe<readonly Row[]>(text, ...(values as never[]));
}
