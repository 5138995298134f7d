-- Each claim looks for the latest version.
CREATE INDEX IF NOT EXISTS idx_application_versions_latest
  ON application_versions (version_timestamp, version_id);
