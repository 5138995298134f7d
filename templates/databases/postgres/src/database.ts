const server = 'postgresql://postgres:postgres@localhost:5432';

export const systemDatabaseUrl = process.env['DBOS_SYSTEM_DATABASE_URL'] ?? `${server}/everstep_app`;

export const testDatabaseUrl = process.env['TEST_DATABASE_URL'] ?? `${server}/everstep_app_test`;
