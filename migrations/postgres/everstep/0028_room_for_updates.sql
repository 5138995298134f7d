-- Nothing is found by the end of a lease: there are few engines. Without the index, and with room in the page, the renewal
-- of a lease touches no index.
DROP INDEX IF EXISTS {schema}.idx_executors_lease_until;
ALTER TABLE {schema}.executors SET (fillfactor = 50);
-- Every workflow is updated when it ends. Its new version then fits into the page of the old one, and the WAL holds only what
-- differs. Dead versions are removed after a twentieth of the rows has changed, not after a fifth.
ALTER TABLE {schema}.workflow_status SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
