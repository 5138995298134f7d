-- Checkpoints that DBOS has left behind: it has dropped the foreign key, and deletes workflows before their checkpoints. A new
-- workflow with such an ID would replay them. From migration 30 on, a trigger deletes checkpoints with their workflow.
DELETE FROM {schema}.operation_outputs AS o
WHERE NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = o.workflow_uuid);
