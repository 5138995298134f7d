-- A workflow that is deleted has no outcome, and its handles fail.
CREATE TRIGGER IF NOT EXISTS everstep_wake_waiters_of_deleted AFTER DELETE ON workflow_status
WHEN OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'outcome:' || OLD.workflow_uuid)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p WHERE p.wait_key = 'outcome:' || OLD.workflow_uuid
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'outcome:' || OLD.workflow_uuid;
END;
