-- Programs other than Everstep claim workflows, too, and do not know the lock under which engines claim from a queue with
-- limits. They count what runs in a snapshot, take rows, and commit. A trigger makes their claims take that lock, and refuses
-- one that has counted before an engine's claim, with an error that such programs get from each other: they try again.
SET LOCAL lock_timeout = '3s';

-- The versions that other programs have run, so that engines know whose work waits.
CREATE TABLE IF NOT EXISTS {schema}.other_versions (
  version_name TEXT NOT NULL,
  application_name TEXT NOT NULL,
  PRIMARY KEY (version_name, application_name)
);
INSERT INTO {schema}.other_versions (version_name, application_name)
SELECT v.version_name, COALESCE(v.application_name, '') FROM {schema}.application_versions AS v
ON CONFLICT DO NOTHING;

-- The claims of engines from queues that other programs may serve as well.
CREATE TABLE IF NOT EXISTS {schema}.shared_queues (
  name TEXT PRIMARY KEY,
  -- How many more workflows engines have started than other programs, of late.
  ahead INTEGER NOT NULL DEFAULT 0,
  claimed_at BIGINT NOT NULL DEFAULT 0
);

CREATE OR REPLACE FUNCTION {schema}.everstep_note_other_version() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.application_versions'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of application_versions may call this function';
  END IF;
  BEGIN
    INSERT INTO {schema}.other_versions (version_name, application_name)
    VALUES (NEW.version_name, COALESCE(NEW.application_name, ''))
    ON CONFLICT DO NOTHING;
    -- Engines may have found that nobody takes what they leave.
    UPDATE {schema}.shared_queues SET ahead = 0 WHERE ahead > 0;
  EXCEPTION
    WHEN OTHERS THEN
      -- Never fail the launch of another program.
      NULL;
  END;
  RETURN NEW;
END;
$body$;

-- Before the insert: a program registers its version at each launch, and the row may be there already.
CREATE OR REPLACE TRIGGER everstep_other_version_noted
BEFORE INSERT OR UPDATE ON {schema}.application_versions
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_note_other_version();

CREATE OR REPLACE FUNCTION {schema}.everstep_check_claim() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  is_taken BOOLEAN := FALSE;
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  -- Once for all rows of a queue in a transaction.
  IF current_setting('everstep.claims_from', TRUE) IS DISTINCT FROM NEW.queue_name THEN
    -- No engine claims from the queue until this transaction ends.
    is_taken := NOT pg_try_advisory_xact_lock_shared(
      hashtextextended('everstep.' || TG_TABLE_SCHEMA || '.queue.' || NEW.queue_name, 0));
    -- Fails if an engine has claimed since the snapshot in which this transaction has counted.
    PERFORM 1 FROM {schema}.shared_queues AS q WHERE q.name = NEW.queue_name FOR SHARE NOWAIT;
    IF NOT FOUND THEN
      INSERT INTO {schema}.shared_queues (name) VALUES (NEW.queue_name) ON CONFLICT DO NOTHING;
    END IF;
    PERFORM set_config('everstep.claims_from', NEW.queue_name, TRUE);
  END IF;
  -- A transaction without a snapshot of its own may have counted before an engine's claim as well, but can count again.
  IF is_taken OR current_setting('transaction_isolation') = 'read committed' AND EXISTS (
    SELECT 1
    FROM {schema}.queues AS q
    WHERE q.name = NEW.queue_name AND (
      q.concurrency <= (
        SELECT COUNT(*) FROM {schema}.workflow_status AS w WHERE w.queue_name = NEW.queue_name AND w.status = 'PENDING')
      OR q.partition_concurrency <= (
        SELECT COUNT(*)
        FROM {schema}.workflow_status AS w
        WHERE w.queue_name = NEW.queue_name AND w.queue_partition_key = NEW.queue_partition_key AND w.status = 'PENDING'))
  ) THEN
    RAISE lock_not_available USING
      MESSAGE = format('an engine of Everstep claims from queue %L', NEW.queue_name), HINT = 'Try again.';
  END IF;
  RETURN NEW;
EXCEPTION
  WHEN undefined_function OR feature_not_supported THEN
    -- The server lacks advisory locks.
    RETURN NEW;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_claim_checked
BEFORE UPDATE OF status ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  OLD.status = 'ENQUEUED' AND NEW.status = 'PENDING' AND NEW.queue_name IS NOT NULL
  AND current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on'
)
EXECUTE FUNCTION {schema}.everstep_check_claim();

REVOKE ALL ON FUNCTION {schema}.everstep_check_claim() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_note_other_version() FROM PUBLIC;
