-- online
-- Among the versions that belong to no application a version name is used once.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_application_versions_unclaimed_version
  ON {schema}.application_versions (version_name)
  WHERE application_name IS NULL;
