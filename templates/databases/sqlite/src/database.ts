export const systemDatabaseUrl = process.env['DBOS_SYSTEM_DATABASE_URL'] ?? 'sqlite:everstep-app.sqlite';

export const testDatabaseUrl = process.env['TEST_DATABASE_URL'] ?? 'sqlite::memory:';
