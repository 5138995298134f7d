-- Nothing is found by the end of a lease: there are few engines.
DROP INDEX IF EXISTS idx_executors_lease_until;
