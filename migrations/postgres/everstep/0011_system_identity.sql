-- Tells this system database from others whose engines use the same application database. It has one row.
CREATE TABLE IF NOT EXISTS {schema}.system_identity (
  key TEXT PRIMARY KEY,
  id TEXT NOT NULL
);
INSERT INTO {schema}.system_identity (key, id)
VALUES ('system', replace(gen_random_uuid()::text, '-', ''))
ON CONFLICT DO NOTHING;
