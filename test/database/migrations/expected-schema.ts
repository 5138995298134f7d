// What a database at the latest version has, written out: what every language shares at 123, and Everstep's own tables.
import type { Catalog } from './catalog.js';

const COLUMNS = lines(`
  application_versions.application_name text
  application_versions.created_at bigint not null default
  application_versions.version_id text not null
  application_versions.version_name text not null
  application_versions.version_timestamp bigint not null default
  archived_workflows.archived_at bigint not null
  archived_workflows.object_name text not null
  archived_workflows.workflow_uuid text not null
  change_counters.changes bigint not null
  change_counters.topic text not null
  event_dispatch_kv.key text not null
  event_dispatch_kv.service_name text not null
  event_dispatch_kv.update_seq numeric(38,0)
  event_dispatch_kv.update_time numeric(38,15)
  event_dispatch_kv.value text
  event_dispatch_kv.workflow_fn_name text not null
  executors.application_name text
  executors.application_version text
  executors.executor_id text not null
  executors.heartbeat_at bigint not null default
  executors.host text not null
  executors.incarnation_id text not null
  executors.lease_until_epoch_ms bigint not null
  executors.metadata text
  executors.pid integer not null
  executors.started_at bigint not null default
  journal.actor text
  journal.at bigint not null default
  journal.attempt integer
  journal.completed_at bigint
  journal.event_type text not null
  journal.executor text
  journal.key text
  journal.name text
  journal.owner text
  journal.started_at bigint
  journal.step integer
  journal.workflow_id text not null
  journal_timers.created_at bigint not null default
  journal_timers.fire_at bigint not null
  journal_timers.fired boolean not null default
  journal_timers.timer_id text not null
  journal_timers.workflow_id text not null
  notifications.consumed boolean not null default
  notifications.consumed_by_function_id integer
  notifications.created_at_epoch_ms bigint not null default
  notifications.destination_uuid text not null
  notifications.message text not null
  notifications.message_uuid text not null default
  notifications.serialization text
  notifications.topic text
  operation_outputs.application_name text
  operation_outputs.arguments_hash integer
  operation_outputs.child_workflow_id text
  operation_outputs.completed_at_epoch_ms bigint
  operation_outputs.error text
  operation_outputs.function_id integer not null
  operation_outputs.function_name text not null default
  operation_outputs.output text
  operation_outputs.retention_timestamp bigint not null default
  operation_outputs.serialization text
  operation_outputs.started_at_epoch_ms bigint
  operation_outputs.workflow_uuid text not null
  parked_waits.awaited_name text
  parked_waits.awaited_uuid text not null
  parked_waits.kind text not null
  parked_waits.wait_key text not null
  parked_waits.workflow_uuid text not null
  paused_queues.name text not null
  paused_queues.paused_at bigint not null
  queues.application_name text
  queues.concurrency integer
  queues.created_at bigint not null default
  queues.name text not null
  queues.partition_concurrency integer
  queues.partition_queue boolean not null default
  queues.partition_rate_limit_max integer
  queues.partition_rate_limit_period_sec real
  queues.partition_worker_concurrency integer
  queues.polling_interval_sec real not null default
  queues.priority_enabled boolean not null default
  queues.queue_id text not null default
  queues.rate_limit_max integer
  queues.rate_limit_period_sec real
  queues.updated_at bigint not null default
  queues.worker_concurrency integer
  schedule_settings.jitter_ms bigint not null
  schedule_settings.overlap text not null
  schedule_settings.schedule_id text not null
  schedule_timers.created_at bigint not null
  schedule_timers.due_at bigint not null
  schedule_timers.fire_at bigint not null
  schedule_timers.schedule_id text not null
  slot_releasing_queues.name text not null
  streams.function_id integer not null default
  step_attempts.attempts integer not null
  step_attempts.errors text not null
  step_attempts.function_id integer not null
  step_attempts.retry_at_epoch_ms bigint not null
  step_attempts.workflow_uuid text not null
  streams.key text not null
  streams.offset integer not null
  streams.serialization text
  streams.value text not null
  streams.workflow_uuid text not null
  system_identity.id text not null
  system_identity.key text not null
  workflow_events.key text not null
  workflow_events.serialization text
  workflow_events.value text not null
  workflow_events.workflow_uuid text not null
  workflow_events_history.function_id integer not null
  workflow_events_history.key text not null
  workflow_events_history.serialization text
  workflow_events_history.value text not null
  workflow_events_history.workflow_uuid text not null
  workflow_input.inputs text
  workflow_input.retention_timestamp bigint not null default
  workflow_input.workflow_uuid text not null
  workflow_output.error text
  workflow_output.output text
  workflow_output.retention_timestamp bigint not null default
  workflow_output.workflow_uuid text not null
  workflow_schedules.application_name text
  workflow_schedules.automatic_backfill boolean not null default
  workflow_schedules.context text not null
  workflow_schedules.cron_timezone text
  workflow_schedules.last_fired_at text
  workflow_schedules.queue_name text
  workflow_schedules.schedule text not null
  workflow_schedules.schedule_id text not null
  workflow_schedules.schedule_name text not null
  workflow_schedules.status text not null default
  workflow_schedules.workflow_class_name text
  workflow_schedules.workflow_name text not null
  workflow_status.application_id text
  workflow_status.application_name text
  workflow_status.application_version text
  workflow_status.assumed_role text
  workflow_status.authenticated_roles text
  workflow_status.authenticated_user text
  workflow_status.class_name varchar(255) default
  workflow_status.completed_at bigint
  workflow_status.config_name varchar(255) default
  workflow_status.created_at bigint not null default
  workflow_status.creator_xid text
  workflow_status.debounce_deadline_epoch_ms bigint
  workflow_status.deduplication_id text
  workflow_status.delay_until_epoch_ms bigint
  workflow_status.error text
  workflow_status.executor_id text
  workflow_status.forked_from text
  workflow_status.inputs text
  workflow_status.is_debounced boolean not null default
  workflow_status.name text
  workflow_status.output text
  workflow_status.owner_xid text
  workflow_status.parent_workflow_id text
  workflow_status.priority integer not null default
  workflow_status.queue_name text
  workflow_status.queue_partition_key text
  workflow_status.rate_limited boolean not null default
  workflow_status.recovery_attempts bigint default
  workflow_status.request text
  workflow_status.schedule_name text
  workflow_status.serialization text
  workflow_status.started_at_epoch_ms bigint
  workflow_status.status text
  workflow_status.updated_at bigint not null default
  workflow_status.was_forked_from boolean not null default
  workflow_status.workflow_deadline_epoch_ms bigint
  workflow_status.workflow_timeout_ms bigint
  workflow_status.workflow_uuid text not null
`);

const PRIMARY_KEYS = lines(`
  application_versions (version_id)
  archived_workflows (workflow_uuid)
  change_counters (topic)
  dbos_migrations (version)
  event_dispatch_kv (service_name, workflow_fn_name, key)
  everstep_migrations (version)
  executors (incarnation_id)
  journal_timers (timer_id)
  notifications (message_uuid)
  operation_outputs (workflow_uuid, function_id)
  parked_waits (wait_key, workflow_uuid)
  paused_queues (name)
  queues (queue_id)
  schedule_settings (schedule_id)
  schedule_timers (schedule_id)
  slot_releasing_queues (name)
  step_attempts (workflow_uuid, function_id)
  streams (workflow_uuid, key, "offset")
  system_identity (key)
  workflow_events (workflow_uuid, key)
  workflow_events_history (workflow_uuid, function_id, key)
  workflow_input (workflow_uuid)
  workflow_output (workflow_uuid)
  workflow_schedules (schedule_id)
  workflow_status (workflow_uuid)
`);

const UNIQUE_KEYS = lines(`
  application_versions (version_name)
  queues (name)
  workflow_schedules (schedule_name)
`);

const FOREIGN_KEYS = lines(`
  journal_timers: foreign key (workflow_id) references workflow_status(workflow_uuid) on update cascade on delete cascade
  notifications: foreign key (destination_uuid) references workflow_status(workflow_uuid) on update cascade on delete cascade
  parked_waits: foreign key (workflow_uuid) references workflow_status(workflow_uuid) on update cascade on delete cascade
  schedule_timers: foreign key (schedule_id) references workflow_schedules(schedule_id) on update cascade on delete cascade
  step_attempts: foreign key (workflow_uuid) references workflow_status(workflow_uuid) on update cascade on delete cascade
  streams: foreign key (workflow_uuid) references workflow_status(workflow_uuid) on update cascade on delete cascade
  workflow_events: foreign key (workflow_uuid) references workflow_status(workflow_uuid) on update cascade on delete cascade
  workflow_events_history: foreign key (workflow_uuid) references workflow_status(workflow_uuid) on update cascade on delete cascade
`);

const CHECKPOINT_KEY = lines(`
  operation_outputs: foreign key (workflow_uuid) references workflow_status(workflow_uuid) on update cascade on delete cascade
`);

export const POSTGRES_SCHEMA: Catalog = {
  columns: [
    ...COLUMNS,
    'dbos_migrations.version bigint not null',
    'everstep_migrations.version bigint not null',
    'fenced_sessions.fenced_at bigint not null',
    'fenced_sessions.session_key bigint not null',
    'journal.details jsonb',
    'journal.seq bigint not null',
    'journal.xid xid8 not null default',
    'journal_epochs.after_seq bigint not null',
    'journal_epochs.cluster text not null',
    'journal_epochs.epoch integer not null',
    'other_versions.application_name text not null',
    'other_versions.version_name text not null',
    'shared_queues.ahead integer not null default',
    'shared_queues.claimed_at bigint not null default',
    'shared_queues.name text not null',
    'workflow_status.attributes jsonb',
    'parked_wakes.wait_key text not null',
    'workflow_status.has_parked_waiter boolean',
  ].sort(),
  primaryKeys: [
    ...PRIMARY_KEYS,
    'fenced_sessions (session_key)',
    'journal (xid, seq)',
    'journal_epochs (epoch)',
    'other_versions (version_name, application_name)',
    'shared_queues (name)',
  ].sort(),
  uniqueKeys: UNIQUE_KEYS,
  foreignKeys: FOREIGN_KEYS,
  indexes: lines(`
  CREATE INDEX idx_application_versions_latest ON application_versions USING btree (version_timestamp, version_id)
  CREATE INDEX idx_executors_executor_id ON executors USING btree (executor_id)
  CREATE INDEX idx_journal_at ON journal USING brin (at) WITH (pages_per_range='32', autosummarize='on')
  CREATE INDEX idx_journal_timers_pending ON journal_timers USING btree (fire_at) WHERE (NOT fired)
  CREATE INDEX idx_journal_timers_workflow ON journal_timers USING btree (workflow_id)
  CREATE INDEX idx_journal_workflow ON journal USING btree (workflow_id, step)
  CREATE INDEX idx_notifications_unconsumed ON notifications USING btree (destination_uuid, topic, created_at_epoch_ms, message_uuid) WHERE (consumed = false)
  CREATE INDEX idx_operation_outputs_completed_at ON operation_outputs USING brin (completed_at_epoch_ms) WITH (autosummarize='on')
  CREATE INDEX idx_parked_waits_workflow ON parked_waits USING btree (workflow_uuid)
  CREATE INDEX idx_workflow_input_retention ON workflow_input USING btree (retention_timestamp)
  CREATE INDEX idx_workflow_output_retention ON workflow_output USING btree (retention_timestamp)
  CREATE INDEX idx_workflow_status_attributes ON workflow_status USING gin (attributes) WHERE (attributes IS NOT NULL)
  CREATE INDEX idx_workflow_status_claims ON workflow_status USING btree (queue_name, COALESCE(application_version, ''::text), priority, created_at, creator_xid, workflow_uuid) WHERE CASE WHEN (status = 'ENQUEUED'::text) THEN true ELSE false END
  CREATE INDEX idx_workflow_status_completed_at ON workflow_status USING btree (completed_at) WHERE (completed_at IS NOT NULL)
  CREATE INDEX idx_workflow_status_deadline ON workflow_status USING btree (workflow_deadline_epoch_ms) WHERE ((status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text, 'DELAYED'::text])) AND (workflow_deadline_epoch_ms IS NOT NULL))
  CREATE INDEX idx_workflow_status_delayed ON workflow_status USING btree (delay_until_epoch_ms) WHERE (status = 'DELAYED'::text)
  CREATE INDEX idx_workflow_status_failed ON workflow_status USING btree (status, created_at) WHERE (status = ANY (ARRAY['ERROR'::text, 'CANCELLED'::text, 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'::text]))
  CREATE INDEX idx_workflow_status_forked_from ON workflow_status USING btree (forked_from) WHERE (forked_from IS NOT NULL)
  CREATE INDEX idx_workflow_status_in_flight_v2 ON workflow_status USING btree (queue_name, status, priority, created_at) INCLUDE (application_name) WHERE (status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text]))
  CREATE INDEX idx_workflow_status_listing_state ON workflow_status USING btree (( CASE WHEN ((status = 'DELAYED'::text) AND (owner_xid ~~ '%.%'::text)) THEN 'PARKED'::text ELSE status END), created_at) WHERE CASE WHEN (status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text])) THEN true ELSE false END
  CREATE INDEX idx_workflow_status_parent_workflow_id ON workflow_status USING btree (parent_workflow_id) WHERE (parent_workflow_id IS NOT NULL)
  CREATE INDEX idx_workflow_status_partition_claims ON workflow_status USING btree (queue_name, queue_partition_key, COALESCE(application_version, ''::text), priority, created_at, creator_xid, workflow_uuid) WHERE CASE WHEN ((status = 'ENQUEUED'::text) AND (queue_partition_key IS NOT NULL)) THEN true ELSE false END
  CREATE INDEX idx_workflow_status_partition_dequeue_v3 ON workflow_status USING btree (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid) INCLUDE (application_name) WHERE ((status = ANY (ARRAY['ENQUEUED'::text, 'PENDING'::text])) AND (queue_partition_key IS NOT NULL))
  CREATE INDEX idx_workflow_status_rate_limited ON workflow_status USING btree (queue_name, started_at_epoch_ms) WHERE (rate_limited = true)
  CREATE INDEX idx_workflow_status_running ON workflow_status USING btree (owner_xid COLLATE "C") WHERE (status = 'PENDING'::text)
  CREATE INDEX idx_workflow_status_schedule_name ON workflow_status USING btree (schedule_name) WHERE (schedule_name IS NOT NULL)
  CREATE INDEX idx_workflow_status_started_at ON workflow_status USING btree (started_at_epoch_ms) WHERE (started_at_epoch_ms IS NOT NULL)
  CREATE INDEX idx_workflow_topic ON notifications USING btree (destination_uuid, topic)
  CREATE INDEX workflow_status_created_at_index ON workflow_status USING btree (created_at)
  CREATE UNIQUE INDEX uq_application_versions_owner_version ON application_versions USING btree (application_name, version_name) WHERE (application_name IS NOT NULL)
  CREATE UNIQUE INDEX uq_application_versions_unclaimed_version ON application_versions USING btree (version_name) WHERE (application_name IS NULL)
  CREATE UNIQUE INDEX uq_journal_key ON journal USING btree (workflow_id, key) WHERE (key IS NOT NULL)
  CREATE UNIQUE INDEX uq_workflow_status_dedup_id ON workflow_status USING btree (queue_name, deduplication_id) WHERE (deduplication_id IS NOT NULL)
`),
  triggers: lines(`
  CREATE CONSTRAINT TRIGGER everstep_wake_at_commit AFTER INSERT ON parked_wakes DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION everstep_wake_at_commit()
  CREATE TRIGGER dbos_notifications_trigger AFTER INSERT ON notifications FOR EACH ROW EXECUTE FUNCTION notifications_function()
  CREATE TRIGGER everstep_claim_checked BEFORE UPDATE OF status ON workflow_status FOR EACH ROW WHEN (((old.status = 'ENQUEUED'::text) AND (new.status = 'PENDING'::text) AND (new.queue_name IS NOT NULL) AND (current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text))) EXECUTE FUNCTION everstep_check_claim()
  CREATE TRIGGER everstep_end_waits AFTER UPDATE ON workflow_status FOR EACH ROW WHEN (((old.status = 'DELAYED'::text) AND (new.status <> 'DELAYED'::text) AND (old.owner_xid ~~ '%.%'::text))) EXECUTE FUNCTION everstep_end_waits()
  CREATE TRIGGER everstep_fork_journaled AFTER INSERT ON workflow_status FOR EACH ROW WHEN ((new.forked_from IS NOT NULL)) EXECUTE FUNCTION everstep_journal_fork()
  CREATE TRIGGER everstep_journal_deleted AFTER DELETE ON workflow_status FOR EACH ROW EXECUTE FUNCTION everstep_journal_follow()
  CREATE TRIGGER everstep_journal_kept BEFORE DELETE OR UPDATE ON journal FOR EACH ROW EXECUTE FUNCTION everstep_guard_journal()
  CREATE TRIGGER everstep_journal_not_truncated BEFORE TRUNCATE ON journal FOR EACH STATEMENT EXECUTE FUNCTION everstep_guard_journal()
  CREATE TRIGGER everstep_journal_renamed AFTER UPDATE OF workflow_uuid ON workflow_status FOR EACH ROW WHEN ((old.workflow_uuid <> new.workflow_uuid)) EXECUTE FUNCTION everstep_journal_follow()
  CREATE TRIGGER everstep_journal_truncated AFTER TRUNCATE ON workflow_status FOR EACH STATEMENT EXECUTE FUNCTION everstep_journal_follow()
  CREATE TRIGGER everstep_other_version_noted BEFORE INSERT OR UPDATE ON application_versions FOR EACH ROW WHEN ((current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION everstep_note_other_version()
  CREATE TRIGGER everstep_queues_changed AFTER INSERT OR DELETE OR UPDATE ON queues FOR EACH STATEMENT WHEN ((current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION everstep_notify_of_queues()
  CREATE TRIGGER everstep_schedule_changed AFTER INSERT OR DELETE OR UPDATE OF schedule_id, schedule_name, workflow_name, workflow_class_name, schedule, status, context, automatic_backfill, cron_timezone, queue_name, application_name ON workflow_schedules FOR EACH ROW WHEN ((current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION everstep_notify_of_schedule()
  CREATE TRIGGER everstep_step_checked AFTER INSERT OR UPDATE OF workflow_uuid ON operation_outputs FOR EACH ROW WHEN (((current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text) AND (current_setting('everstep.checked'::text, true) IS DISTINCT FROM new.workflow_uuid))) EXECUTE FUNCTION everstep_check_step()
  CREATE TRIGGER everstep_wake_event_readers AFTER INSERT ON workflow_events REFERENCING NEW TABLE AS events FOR EACH STATEMENT EXECUTE FUNCTION everstep_wake_event_readers()
  CREATE TRIGGER everstep_wake_receivers AFTER INSERT ON notifications REFERENCING NEW TABLE AS sent FOR EACH STATEMENT EXECUTE FUNCTION everstep_wake_receivers()
  CREATE TRIGGER everstep_wake_result_waiters AFTER UPDATE ON workflow_status FOR EACH ROW WHEN ((old.has_parked_waiter AND (old.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text, 'PENDING'::text])) AND (new.status <> ALL (ARRAY['ENQUEUED'::text, 'DELAYED'::text, 'PENDING'::text])))) EXECUTE FUNCTION everstep_wake_result_waiters()
  CREATE TRIGGER everstep_wake_waiters_of_deleted AFTER DELETE ON workflow_status FOR EACH ROW WHEN ((old.has_parked_waiter AND (old.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text, 'PENDING'::text])))) EXECUTE FUNCTION everstep_wake_result_waiters()
  CREATE TRIGGER everstep_workflow_deleted AFTER DELETE ON workflow_status FOR EACH ROW WHEN (((current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text) AND (old.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text, 'PENDING'::text])))) EXECUTE FUNCTION everstep_notify_of_workflow()
  CREATE TRIGGER everstep_workflow_inserted AFTER INSERT ON workflow_status FOR EACH ROW WHEN (((current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text) AND (new.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text])))) EXECUTE FUNCTION everstep_notify_of_workflow()
  CREATE TRIGGER everstep_workflow_journaled AFTER UPDATE ON workflow_status FOR EACH ROW WHEN ((((old.status IS DISTINCT FROM new.status) AND ((new.status = ANY (ARRAY['CANCELLED'::text, 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'::text])) OR ((old.status = 'PENDING'::text) AND (new.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text])) AND ((old.started_at_epoch_ms IS NOT NULL) OR (old.queue_name IS NULL) OR (new.status = 'DELAYED'::text))) OR ((old.status <> ALL (ARRAY['ENQUEUED'::text, 'DELAYED'::text, 'PENDING'::text])) AND (new.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text, 'PENDING'::text]))))) OR ((old.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text])) AND (new.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text])) AND (old.delay_until_epoch_ms IS DISTINCT FROM new.delay_until_epoch_ms)) OR ((old.priority <> new.priority) AND (new.status = ANY (ARRAY['ENQUEUED'::text, 'DELAYED'::text, 'PENDING'::text]))))) EXECUTE FUNCTION everstep_journal_change()
  CREATE TRIGGER everstep_workflow_updated AFTER UPDATE ON workflow_status FOR EACH ROW WHEN (((current_setting('everstep.quiet'::text, true) IS DISTINCT FROM 'on'::text) AND ((old.status IS DISTINCT FROM new.status) OR (old.owner_xid IS DISTINCT FROM new.owner_xid) OR (old.delay_until_epoch_ms IS DISTINCT FROM new.delay_until_epoch_ms) OR (old.queue_name IS DISTINCT FROM new.queue_name) OR (old.queue_partition_key IS DISTINCT FROM new.queue_partition_key)))) EXECUTE FUNCTION everstep_notify_of_workflow()
`),
  functions: [
    'enqueue_workflow(' +
      'workflow_name text, queue_name text, ' +
      "positional_args json[] DEFAULT ARRAY[]::json[], named_args json DEFAULT '{}'::json, " +
      'class_name text DEFAULT NULL::text, config_name text DEFAULT NULL::text, ' +
      'workflow_id text DEFAULT NULL::text, app_version text DEFAULT NULL::text, ' +
      'timeout_ms bigint DEFAULT NULL::bigint, deadline_epoch_ms bigint DEFAULT NULL::bigint, ' +
      'deduplication_id text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, ' +
      'queue_partition_key text DEFAULT NULL::text, authenticated_user text DEFAULT NULL::text, ' +
      'authenticated_roles text DEFAULT NULL::text, delay_until_epoch_ms bigint DEFAULT NULL::bigint, ' +
      'application_name text DEFAULT NULL::text' +
      ') search_path=pg_catalog, pg_temp',
    'everstep_check_claim() search_path=pg_catalog, pg_temp;enable_seqscan=off',
    'everstep_check_step() search_path=pg_catalog, pg_temp;enable_seqscan=off',
    'everstep_create_history() search_path=pg_catalog, pg_temp',
    'everstep_delete_execution() search_path=pg_catalog, pg_temp',
    'everstep_end_waits() search_path=pg_catalog, pg_temp;enable_seqscan=off',
    'everstep_guard_journal() search_path=pg_catalog, pg_temp',
    'everstep_journal_change() search_path=pg_catalog, pg_temp',
    'everstep_journal_follow() search_path=pg_catalog, pg_temp;enable_seqscan=off',
    'everstep_journal_fork() search_path=pg_catalog, pg_temp',
    'everstep_json(value text) search_path=pg_catalog, pg_temp',
    'everstep_note_other_version() search_path=pg_catalog, pg_temp;lock_timeout=500ms',
    'everstep_notify_of_queues() search_path=pg_catalog, pg_temp',
    'everstep_notify_of_schedule() search_path=pg_catalog, pg_temp',
    'everstep_notify_of_workflow() search_path=pg_catalog, pg_temp',
    'everstep_wake_at_commit() search_path=pg_catalog, pg_temp',
    'everstep_wake_event_readers() search_path=pg_catalog, pg_temp;enable_seqscan=off',
    'everstep_wake_parked(keys text[]) search_path=pg_catalog, pg_temp;enable_seqscan=off;lock_timeout=500ms',
    'everstep_wake_receivers() search_path=pg_catalog, pg_temp;enable_seqscan=off',
    'everstep_wake_result_waiters() search_path=pg_catalog, pg_temp',
    'notifications_function() search_path=pg_catalog, pg_temp',
    'send_message(destination_id text, message json, topic text DEFAULT NULL::text, message_id text DEFAULT NULL::text) ' +
      'search_path=pg_catalog, pg_temp',
  ],
};

export const SQLITE_SCHEMA: Catalog = {
  columns: [
    ...COLUMNS,
    'dbos_migrations.version integer not null',
    'everstep_migrations.version integer not null',
    'journal.details text',
    'journal.seq integer',
    'journal_notes.kind text not null',
    'journal_notes.note text not null',
    'workflow_status.attributes text',
  ].sort(),
  primaryKeys: [...PRIMARY_KEYS, 'journal_notes (kind)'].sort(),
  uniqueKeys: UNIQUE_KEYS,
  // Postgres has triggers instead of that of checkpoints.
  foreignKeys: [...FOREIGN_KEYS, ...CHECKPOINT_KEY].toSorted(),
  indexes: lines(`
  CREATE INDEX idx_application_versions_latest ON application_versions (version_timestamp, version_id)
  CREATE INDEX idx_executors_executor_id ON executors (executor_id)
  CREATE INDEX idx_journal_at ON journal (at)
  CREATE INDEX idx_journal_timers_pending ON journal_timers (fire_at) WHERE NOT fired
  CREATE INDEX idx_journal_timers_workflow ON journal_timers (workflow_id)
  CREATE INDEX idx_journal_workflow ON journal (workflow_id, step)
  CREATE INDEX idx_notifications_unconsumed ON notifications (destination_uuid, topic, created_at_epoch_ms, message_uuid) WHERE consumed = FALSE
  CREATE INDEX idx_operation_outputs_completed_at_function_name_v2 ON operation_outputs (completed_at_epoch_ms, function_name)
  CREATE INDEX idx_parked_waits_workflow ON parked_waits (workflow_uuid)
  CREATE INDEX idx_workflow_input_retention ON workflow_input (retention_timestamp)
  CREATE INDEX idx_workflow_output_retention ON workflow_output (retention_timestamp)
  CREATE INDEX idx_workflow_status_claims ON workflow_status (queue_name, COALESCE(application_version, ''), priority, created_at, creator_xid, workflow_uuid) WHERE CASE WHEN status = 'ENQUEUED' THEN TRUE ELSE FALSE END
  CREATE INDEX idx_workflow_status_completed_at ON workflow_status (completed_at) WHERE completed_at IS NOT NULL
  CREATE INDEX idx_workflow_status_deadline ON workflow_status (workflow_deadline_epoch_ms) WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND workflow_deadline_epoch_ms IS NOT NULL
  CREATE INDEX idx_workflow_status_delayed ON workflow_status (delay_until_epoch_ms) WHERE status = 'DELAYED'
  CREATE INDEX idx_workflow_status_failed ON workflow_status (status, created_at) WHERE status IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
  CREATE INDEX idx_workflow_status_forked_from ON workflow_status (forked_from) WHERE forked_from IS NOT NULL
  CREATE INDEX idx_workflow_status_in_flight_v2 ON workflow_status (queue_name, status, priority, created_at) WHERE status IN ('ENQUEUED', 'PENDING')
  CREATE INDEX idx_workflow_status_listing_state ON workflow_status (CASE WHEN status = 'DELAYED' AND owner_xid LIKE '%.%' THEN 'PARKED' ELSE status END, created_at) WHERE CASE WHEN status IN ('ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END
  CREATE INDEX idx_workflow_status_parent_workflow_id ON workflow_status (parent_workflow_id) WHERE parent_workflow_id IS NOT NULL
  CREATE INDEX idx_workflow_status_partition_claims ON workflow_status (queue_name, queue_partition_key, COALESCE(application_version, ''), priority, created_at, creator_xid, workflow_uuid) WHERE CASE WHEN status = 'ENQUEUED' AND queue_partition_key IS NOT NULL THEN TRUE ELSE FALSE END
  CREATE INDEX idx_workflow_status_partition_dequeue_v3 ON workflow_status (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid) WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL
  CREATE INDEX idx_workflow_status_rate_limited ON workflow_status (queue_name, started_at_epoch_ms) WHERE rate_limited = TRUE
  CREATE INDEX idx_workflow_status_running ON workflow_status (owner_xid) WHERE status = 'PENDING'
  CREATE INDEX idx_workflow_status_schedule_name ON workflow_status (schedule_name) WHERE schedule_name IS NOT NULL
  CREATE INDEX idx_workflow_status_started_at ON workflow_status (started_at_epoch_ms) WHERE started_at_epoch_ms IS NOT NULL
  CREATE INDEX idx_workflow_topic ON notifications (destination_uuid, topic)
  CREATE INDEX workflow_status_created_at_index ON workflow_status (created_at)
  CREATE UNIQUE INDEX uq_application_versions_owner_version ON application_versions (application_name, version_name) WHERE application_name IS NOT NULL
  CREATE UNIQUE INDEX uq_application_versions_unclaimed_version ON application_versions (version_name) WHERE application_name IS NULL
  CREATE UNIQUE INDEX uq_journal_key ON journal (workflow_id, key) WHERE key IS NOT NULL
  CREATE UNIQUE INDEX uq_workflow_status_dedup_id ON workflow_status (queue_name, deduplication_id) WHERE deduplication_id IS NOT NULL
`),
  triggers: lines(`
  everstep_end_waits
  everstep_execution_deleted
  everstep_fork_journaled
  everstep_journal_deleted
  everstep_journal_not_deleted
  everstep_journal_not_updated
  everstep_journal_renamed
  everstep_schedule_deleted
  everstep_schedule_inserted
  everstep_schedule_updated
  everstep_wake_event_readers
  everstep_wake_receivers
  everstep_wake_result_waiters
  everstep_wake_waiters_of_deleted
  everstep_workflow_journaled
  history
  history_tasks
  history_timers
  history_workflow_events
  history_workflow_executions
  journal_events
`),
  functions: [],
};

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .sort();
}
