// `everstep/datasource`: for plugins that run functions in transactions of their own databases.
export {
  checkSchemaInstallationPG,
  type CheckSchemaInstallationReturn,
  createTransactionCompletionSchemaPG,
  createTransactionCompletionTablePG,
  DATASOURCE_MIGRATIONS_TABLE,
  type DataSourceMigrationOptions,
  type DataSourceSQLExecutor,
  getDataSourceMigrationsPG,
  getDataSourcePermissionsSQL,
  initializeDataSourceSchemaPG,
  migrateDataSourcePG,
  verifyDataSourcePG,
} from './plugins/transaction/completion-schema.js';
export {
  type DataSourceOwner,
  type DBOSDataSource,
  registerDataSource,
  registerTransaction,
  runTransaction,
} from './plugins/transaction/datasource.js';
export {
  PGIsolationLevel,
  type PGTransactionConfig,
  type Row,
  type TransactionDriver,
  type TransactOptions,
} from './plugins/transaction/driver.js';
export {
  getPGErrorCode,
  isPGFailedSqlTransactionError,
  isPGKeyConflictError,
  isPGRetriableTransactionError,
} from './plugins/transaction/failures.js';
export { replayRecordedStep } from './plugins/transaction/outcomes.js';
export { guardDataSourcePoolPG } from './plugins/transaction/pg-pool.js';
export {
  type DataSourceOptions,
  TransactionalDataSource,
  type TransactionConfig,
} from './plugins/transaction/transactional-data-source.js';
export { assertStillOwnsWorkflow, type DataSourceTransactionHandler } from './run/plugin.js';
export { DBOSError, DBOSStepAlreadyRecordedError, DBOSWorkflowConflictError } from './kernel/errors/errors.js';
