-- Tells this system database from others whose engines use the same application database. It has one row.
CREATE TABLE IF NOT EXISTS system_identity (
  key TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL
);
INSERT INTO system_identity (key, id)
VALUES ('system', lower(hex(randomblob(16))))
ON CONFLICT DO NOTHING;
