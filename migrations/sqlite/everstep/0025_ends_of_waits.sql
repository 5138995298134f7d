-- The ends of parked waits, and queues whose parked workflows give up their slots.

-- Queues whose workflows leave their slots while they are parked.
CREATE TABLE IF NOT EXISTS slot_releasing_queues (
  name TEXT NOT NULL PRIMARY KEY
);

-- The waits of a workflow end when it is no longer parked, whatever program changes it.
CREATE TRIGGER IF NOT EXISTS everstep_end_waits AFTER UPDATE OF status ON workflow_status
WHEN OLD.status = 'DELAYED' AND NEW.status <> 'DELAYED' AND OLD.owner_xid LIKE '%.%'
BEGIN
  DELETE FROM parked_waits WHERE workflow_uuid = NEW.workflow_uuid;
END;
