// Optional indexes, for applications that often filter by the field. Each costs a write whenever a workflow is created or
// changes state.

/** The filter that the index speeds up, and its column. */
export const OPTIONAL_INDEXES = {
  queueName: 'queue_name',
  workflowName: 'name',
  executorId: 'executor_id',
  applicationVersion: 'application_version',
  authenticatedUser: 'authenticated_user',
  scheduleName: 'schedule_name',
  parentWorkflowID: 'parent_workflow_id',
  workflow_id_prefix: 'workflow_uuid',
} as const;

export type OptionalIndex = keyof typeof OPTIONAL_INDEXES;

/** The name of the index in the database. */
export function indexName(index: OptionalIndex): string {
  return `idx_workflow_status_listing_${OPTIONAL_INDEXES[index]}`;
}
