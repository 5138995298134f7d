-- A workflow that was claimed before there was a slot for it, and goes back to its queue before it has started, has lost no
-- attempt.
SET LOCAL lock_timeout = '3s';

-- The condition is evaluated before anything is called or queued. A workflow that just runs does not meet it.
CREATE OR REPLACE TRIGGER everstep_workflow_journaled
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  (OLD.status IS DISTINCT FROM NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED')
      AND (OLD.started_at_epoch_ms IS NOT NULL OR OLD.queue_name IS NULL OR NEW.status = 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
)
EXECUTE FUNCTION {schema}.everstep_journal_change();
