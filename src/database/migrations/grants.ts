// The minimum privileges on the system tables for an application whose role does not own them.
import { quoteIdentifier } from '../../kernel/sql/sql.js';
import { historySchema } from './plan.js';

/** Statements for the owner of the schema to run. They also cover the owner's later tables and functions. */
export function grantStatements(schemaName: string, roleName: string): string[] {
  const schema = quoteIdentifier(schemaName);
  const role = quoteIdentifier(roleName);
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${role}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role}`,
    // The owner alone migrates. A role that could change the versions could make it repeat or skip migrations.
    `REVOKE INSERT, UPDATE, DELETE ON ${schema}.dbos_migrations, ${schema}.everstep_migrations FROM ${role}`,
    // Retention deletes rows of the journal. Its guard asks for a right that nothing else needs; nobody can truncate it.
    `GRANT TRUNCATE ON ${schema}.journal TO ${role}`,
    historyGrants(schemaName, roleName),
    `GRANT EXECUTE ON FUNCTION ${schema}.everstep_json TO ${role}`,
    `GRANT EXECUTE ON FUNCTION ${schema}.enqueue_workflow, ${schema}.send_message TO ${role}`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ${role}`,
    `ALTER DEFAULT PRIVILEGES IN SCHEMA ${schema} GRANT EXECUTE ON FUNCTIONS TO ${role}`,
  ];
}

/** The schema of the views is missing if the role that migrated may not create schemas. */
function historyGrants(schemaName: string, roleName: string): string {
  const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
  const [history, role] = [literal(historySchema(schemaName)), literal(roleName)];
  return `DO $everstep$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = ${history}) THEN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', ${history}, ${role});
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', ${history}, ${role});
  END IF;
END;
$everstep$`;
}
