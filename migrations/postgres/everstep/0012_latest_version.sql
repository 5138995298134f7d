-- online
-- Each claim looks for the latest version.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_application_versions_latest
  ON {schema}.application_versions (version_timestamp, version_id);
