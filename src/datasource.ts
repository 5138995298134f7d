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
} from './datasource/completion-schema.js';
export {
  type DataSourceOwner,
  type DBOSDataSource,
  registerDataSource,
  registerTransaction,
  runTransaction,
} from './datasource/datasource.js';
export {
  PGIsolationLevel,
  type PGTransactionConfig,
  type Row,
  type TransactionDriver,
  type TransactOptions,
} from './datasource/driver.js';
export {
  getPGErrorCode,
  isPGFailedSqlTransactionError,
  isPGKeyConflictError,
  isPGRetriableTransactionError,
} from './datasource/failures.js';
export { replayRecordedStep } from './datasource/outcomes.js';
export { guardDataSourcePoolPG } from './datasource/pg-pool.js';
export {
  type DataSourceOptions,
  TransactionalDataSource,
  type TransactionConfig,
} from './datasource/transactional-data-source.js';
export { assertStillOwnsWorkflow, type DataSourceTransactionHandler } from './engine/plugin.js';
export { DBOSError, DBOSStepAlreadyRecordedError, DBOSWorkflowConflictError } from './model/errors/errors.js';
