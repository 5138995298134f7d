-- What parked workflows wait for besides a time. Triggers wake them in the commit that brings it, whatever program that is
-- of, so that no wake-up is lost.
CREATE TABLE IF NOT EXISTS parked_waits (
  wait_key TEXT NOT NULL,
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  kind TEXT NOT NULL,
  awaited_uuid TEXT NOT NULL,
  awaited_name TEXT,
  PRIMARY KEY (wait_key, workflow_uuid)
);
CREATE INDEX IF NOT EXISTS idx_parked_waits_workflow ON parked_waits (workflow_uuid);

CREATE TRIGGER IF NOT EXISTS everstep_wake_receivers AFTER INSERT ON notifications
WHEN EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p
    WHERE p.wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic;
END;
CREATE TRIGGER IF NOT EXISTS everstep_wake_event_readers AFTER INSERT ON workflow_events
WHEN EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p
    WHERE p.wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key;
END;
CREATE TRIGGER IF NOT EXISTS everstep_wake_result_waiters AFTER UPDATE OF status ON workflow_status
WHEN OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'outcome:' || NEW.workflow_uuid)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p WHERE p.wait_key = 'outcome:' || NEW.workflow_uuid
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'outcome:' || NEW.workflow_uuid;
END;
