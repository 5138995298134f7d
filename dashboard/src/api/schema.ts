// Generated from the OpenAPI document by `dashboard/scripts/types.mjs`: change the routes, and run it again.
export interface paths {
    "/aggregates/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Counts matching steps by group, with their longest durations. */
        post: operations["postAggregatesSteps"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/aggregates/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Counts matching workflows by group, with their longest waits and latencies. */
        post: operations["postAggregatesWorkflows"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/applications/rename": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Renames an application and everything that belongs to it. Stop all processes of both names first. */
        post: operations["postApplicationsRename"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/archived-workflows/{workflowID}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a workflow that retention has archived, as exports have it. */
        get: operations["getArchivedWorkflowsWorkflowID"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/attention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what needs attention, the most harmful first. */
        get: operations["getAttention"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels active workflows and returns their IDs. Others do not change. */
        post: operations["postBulkCancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deletes workflows with all their data, and returns the IDs of those that existed. */
        post: operations["postBulkDelete"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Forks workflows: all of them, or none if one does not exist or an ID is in use. */
        post: operations["postBulkFork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk/fork-from-failure": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Forks workflows from where each failed, or from another step. Pass exactly one of the fields that select the step. */
        post: operations["postBulkForkFromFailure"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bulk/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes workflows that have no result or error yet, and returns their IDs. All must exist, or none is resumed. */
        post: operations["postBulkResume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Streams changes of workflows and queues as Server-Sent Events. */
        get: operations["getEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/executors": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists executors, including dead ones that have not been cleaned up yet. */
        get: operations["getExecutors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/executors/{executorID}/recover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Puts the running workflows of a dead executor back into their queues. */
        post: operations["postExecutorsExecutorIDRecover"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Exports matching workflows with all their data as JSON lines, in creation order. */
        get: operations["getExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Checks the database and everything that runs on it. */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the stored events of all workflows since a time, in an order in which none is skipped. */
        get: operations["getHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Imports exported workflows, each completely or not at all. Active ones are imported as cancelled by default. */
        post: operations["postImport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/indexes/{index}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Builds an optional index. On SQLite, writers wait for it. */
        put: operations["putIndexesIndex"];
        post?: never;
        /** Drops an optional index. */
        delete: operations["deleteIndexesIndex"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/info": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes the process that serves this interface. */
        get: operations["getInfo"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/maintenance/garbage-collect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deletes old workflows that have ended, in small commits. Pass a cutoff, a number to keep, or both. */
        post: operations["postMaintenanceGarbageCollect"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/maintenance/global-timeout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels all active workflows created at the cutoff or earlier. */
        post: operations["postMaintenanceGlobalTimeout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts workflows created and steps completed, by name, from startTime to before endTime. */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the OpenAPI document of this interface. */
        get: operations["getOpenapiJson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the names of the outboxes. */
        get: operations["getOutboxes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/bulk/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes dead letters out of the lists, and keeps them. */
        post: operations["postOutboxesOutboxBulkArchive"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/bulk/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deletes dead letters. */
        post: operations["postOutboxesOutboxBulkDiscard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/bulk/requeue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Puts dead letters back into the outbox. One whose timer ID is pending is skipped. */
        post: operations["postOutboxesOutboxBulkRequeue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/dead-letter-groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts dead letters that failed the same way, the most frequent first. */
        get: operations["getOutboxesOutboxDeadLetterGroups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists dead letters, the newest first. */
        get: operations["getOutboxesOutboxDeadLetters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/dead-letters/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a dead letter. */
        get: operations["getOutboxesOutboxDeadLettersId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/dead-letters/{id}/requeue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Puts a dead letter back into the outbox, archived or not, with another body if one is passed. */
        post: operations["postOutboxesOutboxDeadLettersIdRequeue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says whether messages are fetched in time and dead letters do not pile up. Answers 503 if not. */
        get: operations["getOutboxesOutboxHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compares the tables with their declaration. */
        get: operations["getOutboxesOutboxSchema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/statistics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts messages and dead letters by queue. Reads the whole table of the messages. */
        get: operations["getOutboxesOutboxStatistics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/topics/{topic}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops all processes from fetching messages of a topic. */
        post: operations["postOutboxesOutboxTopicsTopicPause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/outboxes/{outbox}/topics/{topic}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes a paused topic. */
        post: operations["postOutboxesOutboxTopicsTopicResume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts workflows created and ended over time, with durations and queue depths. */
        get: operations["getOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queue-stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts waiting, delayed and running workflows by queue or partition. */
        get: operations["getQueueStats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the queues of the database, and the in-memory queues of this process. */
        get: operations["getQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a queue. */
        get: operations["getQueuesName"];
        /** Registers a queue. Replaces the settings of an existing one unless onConflict says otherwise. */
        put: operations["putQueuesName"];
        post?: never;
        /** Deletes a queue. Its workflows wait until it is registered again. */
        delete: operations["deleteQueuesName"];
        options?: never;
        head?: never;
        /** Changes the given settings; null removes a limit. */
        patch: operations["patchQueuesName"];
        trace?: never;
    };
    "/queues/{name}/details": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns its depth, rate, executors and largest partitions. */
        get: operations["getQueuesNameDetails"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops processes from claiming its workflows until it is resumed. */
        post: operations["postQueuesNamePause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets processes claim its workflows again. */
        post: operations["postQueuesNameResume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/receivers/bulk/archive": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Takes dead letters of receivers out of the lists, and keeps them. */
        post: operations["postReceiversBulkArchive"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/receivers/bulk/discard": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deletes dead letters of receivers. */
        post: operations["postReceiversBulkDiscard"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/receivers/dead-letter-groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts dead letters of receivers that failed the same way, the most frequent first. */
        get: operations["getReceiversDeadLetterGroups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/receivers/dead-letters": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists messages that could not become workflows, the newest first. */
        get: operations["getReceiversDeadLetters"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/receivers/dead-letters/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a dead letter of a receiver. */
        get: operations["getReceiversDeadLettersId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the configured retention. */
        get: operations["getRetention"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retention/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Counts what a retention, by default the configured one, would delete now. Deletes nothing. */
        post: operations["postRetentionPlan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedule-preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the next occurrences of a cron expression, before a schedule has it. */
        get: operations["getSchedulePreview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists matching schedules, sorted by name. */
        get: operations["getSchedules"];
        /** Creates or replaces schedules, all or none. Existing ones keep their status and last run. */
        put: operations["putSchedules"];
        /** Creates a schedule. */
        post: operations["postSchedules"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a schedule. */
        get: operations["getSchedulesName"];
        put?: never;
        post?: never;
        /** Deletes a schedule. Workflows it has enqueued stay. */
        delete: operations["deleteSchedulesName"];
        options?: never;
        head?: never;
        /** Changes the given settings; null removes the time zone or the queue. */
        patch: operations["patchSchedulesName"];
        trace?: never;
    };
    "/schedules/{name}/backfill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enqueues workflows for all occurrences after start and before end. */
        post: operations["postSchedulesNameBackfill"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{name}/backfill-preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lists what a backfill would enqueue, without doing it. */
        post: operations["postSchedulesNameBackfillPreview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{name}/next-runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns its next occurrences. */
        get: operations["getSchedulesNameNextRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{name}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops it from firing until it is resumed. */
        post: operations["postSchedulesNamePause"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Lets it fire again. */
        post: operations["postSchedulesNameResume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/schedules/{name}/trigger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Enqueues its workflow now, even if it is paused. */
        post: operations["postSchedulesNameTrigger"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Says whether the request is authenticated, and what it may do. */
        get: operations["getSession"];
        put?: never;
        /** Logs a browser in with a token. The answer sets a cookie for 12 hours. */
        post: operations["postSession"];
        /** Logs the browser out. */
        delete: operations["deleteSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version-work": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts work that is left by application version, and the live processes of each. */
        get: operations["getVersionWork"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the launched versions of the application, latest first. */
        get: operations["getVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/versions/latest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns the version that runs workflows without a version. */
        get: operations["getVersionsLatest"];
        /** Sets the latest version. */
        put: operations["putVersionsLatest"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflow-count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts matching workflows. */
        get: operations["getWorkflowCount"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists matching workflows, one page at a time. */
        get: operations["getWorkflows"];
        put?: never;
        /** Enqueues a workflow by function name. */
        post: operations["postWorkflows"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a workflow with its input and outcome. */
        get: operations["getWorkflowsWorkflowID"];
        put?: never;
        post?: never;
        /** Deletes it in any status with all its data, and returns the IDs of the deleted workflows. */
        delete: operations["deleteWorkflowsWorkflowID"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/attributes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes the given attributes; null removes one. Others stay. */
        patch: operations["patchWorkflowsWorkflowIDAttributes"];
        trace?: never;
    };
    "/workflows/{workflowID}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancels it unless it has ended, and returns the IDs of the cancelled workflows. */
        post: operations["postWorkflowsWorkflowIDCancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/comparison": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compares its steps and outcome with those of another workflow, such as the one it was forked from. */
        get: operations["getWorkflowsWorkflowIDComparison"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/delay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Delays it if it is enqueued or delayed. */
        put: operations["putWorkflowsWorkflowIDDelay"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns its events. */
        get: operations["getWorkflowsWorkflowIDEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/explanation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Explains its status, such as why it has not started. */
        get: operations["getWorkflowsWorkflowIDExplanation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts a copy of it from one of its steps. */
        post: operations["postWorkflowsWorkflowIDFork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists what happened to it, in order. */
        get: operations["getWorkflowsWorkflowIDHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the messages sent to it, oldest first. */
        get: operations["getWorkflowsWorkflowIDMessages"];
        put?: never;
        /** Sends it a message. */
        post: operations["postWorkflowsWorkflowIDMessages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/priority": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Sets its priority unless it has ended; lower numbers run first. */
        put: operations["putWorkflowsWorkflowIDPriority"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Resumes it from its last checkpoint unless it has a result or an error. Returns its ID if it was resumed. */
        post: operations["postWorkflowsWorkflowIDResume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/rewind": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Runs it again under its own ID, from one of its steps. It must have ended. */
        post: operations["postWorkflowsWorkflowIDRewind"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/steps": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists its steps in order. */
        get: operations["getWorkflowsWorkflowIDSteps"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/stream-values": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns values of a stream, one page at a time. */
        get: operations["getWorkflowsWorkflowIDStreamValues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/streams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists its streams. */
        get: operations["getWorkflowsWorkflowIDStreams"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns when its steps, sleeps, waits and children began and ended, with failed attempts. */
        get: operations["getWorkflowsWorkflowIDTimeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns its parents and children, each parent before its children. */
        get: operations["getWorkflowsWorkflowIDTree"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/workflows/{workflowID}/value": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Downloads a whole value, which other routes shorten if it is large. */
        get: operations["getWorkflowsWorkflowIDValue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AttentionItem: {
            count: number;
            /** @enum {string} */
            harm: "high" | "medium" | "low";
            /** @enum {string} */
            kind: "migrations-due" | "dead-letters" | "outbox-dead-letters" | "receiver-dead-letters" | "silent-executor" | "unserved-queue" | "stranded-version" | "failing-function" | "paused-queue";
            /** @description The page that shows more, with its filters. */
            link: {
                /** @enum {string} */
                page: "workflows" | "queues" | "executors" | "outboxes" | "receivers" | "settings";
                query: {
                    [key: string]: string;
                };
            };
            /** @description For people. */
            reason: string;
            /** @description What is concerned, such as the name of a queue. */
            title: string;
        };
        Change: {
            /** @description False if there was nothing to change. */
            changed: boolean;
        };
        DeadLetter: {
            archivedAt: number | null;
            attempts: number;
            body: components["schemas"]["Value"];
            createdAt: number;
            deliveries: number;
            error: string | null;
            errorName: string | null;
            failedAt: number;
            fingerprint: string | null;
            headers: {
                [key: string]: string;
            };
            id: string;
            key: string | null;
            messageID: string | null;
            originalID: string;
            reason: string;
            replays: number;
            timerId: string | null;
            topic: string;
            traceparent: string | null;
        };
        DeadLetterGroup: {
            count: number;
            errorName: string | null;
            fingerprint: string | null;
            firstFailedAt: number;
            lastFailedAt: number;
            reason: string;
            sampleID: string;
            topic: string;
        };
        Error: {
            error: {
                code: string;
                message: string;
            };
        };
        Executor: {
            applicationName: string;
            applicationVersion: string;
            executorID: string;
            /** @description Its workflows, as class.name. */
            functions?: string[];
            heartbeatAt: number;
            host: string;
            /** @description Identifies this launch of the executor. */
            incarnationID: string;
            instances?: string[];
            /** @description Its lease has not expired. */
            isAlive: boolean;
            leaseUntil: number;
            listenQueues?: string[] | null;
            memoryQueues?: string[];
            pid: number;
            /** @description Workflows that it runs. */
            running: number;
            startedAt: number;
        };
        Explanation: {
            action: {
                /** @enum {string} */
                kind: "fork" | "resume" | "start-now" | "send-message" | "resume-queue" | "register-queue" | "change-queue" | "set-priority" | "recover-executor" | "start-executor";
                /** @description For people. */
                label: string;
            } | null;
            details: unknown;
            /** @description An explanation, for people. */
            message: string;
            /** @description A code, for programs. */
            reason: string;
            status: string | null;
            workflowID: string;
        };
        FamilyMember: {
            completedAt: number | null;
            createdAt: number;
            dequeuedAt: number | null;
            parentWorkflowID: string | null;
            /** @enum {string} */
            status: "PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED";
            workflowID: string;
            workflowName: string;
        };
        Health: {
            /** @description What the server has of what Everstep uses; empty for SQLite. */
            capabilities: {
                isAvailable: boolean;
                name: string;
                /** @description What happens without it. */
                without: string;
            }[];
            /** @description How far this process is ahead of the database's clock. */
            clockAheadMs: number;
            /** @enum {string} */
            database: "postgres" | "sqlite";
            /** @description As everstep doctor reports them. */
            findings: {
                /** @enum {string} */
                kind: "problem" | "notice";
                message: string;
                subject: string;
            }[];
            /** @description Optional indexes, for lists with these filters. */
            indexes: {
                /**
                 * @description The filter that it speeds up.
                 * @enum {string}
                 */
                index: "queueName" | "workflowName" | "executorId" | "applicationVersion" | "authenticatedUser" | "scheduleName" | "parentWorkflowID" | "workflow_id_prefix";
                isThere: boolean;
            }[];
            schema: {
                /** @description Migrations that have not run. */
                due: number;
                /** @description By this release. */
                neededVersions: {
                    everstep: number;
                    shared: number;
                };
                /** @description Of the tables. */
                versions: {
                    everstep: number;
                    shared: number;
                };
            };
            version: string;
        };
        HistoryDifference: {
            /** @description The number of a step, or `outcome`. */
            at: unknown;
            first?: components["schemas"]["HistoryEvent"];
            second?: components["schemas"]["HistoryEvent"];
        };
        HistoryEvent: {
            actor?: string;
            /** @description Epoch milliseconds. */
            at: number;
            attempt?: number;
            /** @description Pass it as `after` to continue behind this event. */
            cursor: string;
            details: Record<string, never>;
            executor?: string;
            /** @description Inputs, results and errors, if asked for. */
            payloads?: {
                [key: string]: components["schemas"]["Value"];
            };
            step?: number;
            type: string;
            workflowID: string;
        };
        Message: {
            consumed: boolean;
            createdAtEpochMs: number;
            message: components["schemas"]["Value"];
            topic: string | null;
        };
        OutboxFinding: {
            actual: string;
            code: string;
            expected: string;
            fixSql: string;
            object: string;
            /** @enum {string} */
            severity: "error" | "warning";
        };
        OutboxHealth: {
            ok: boolean;
            paused: string[];
            problems: string[];
            queues: components["schemas"]["OutboxQueue"][];
        };
        OutboxQueue: {
            deadLetters: number;
            depth: number;
            due: number;
            inFlight: number;
            lagMs: number;
            queue: string;
            retrying: number;
            stale: number;
        };
        Overview: {
            bucketMs: number;
            /** @description Oldest first. The last one is not over. */
            buckets: components["schemas"]["OverviewBucket"][];
            /** @description As they are now. */
            queues: components["schemas"]["QueueStats"][];
            /** @enum {string} */
            window: "1h" | "24h";
        };
        OverviewBucket: {
            /** @description When it begins. */
            at: number;
            cancelled: number;
            created: number;
            deadLettered: number;
            failed: number;
            longestWaitMs: number | null;
            p50Ms: number | null;
            p95Ms: number | null;
            succeeded: number;
            /** @description Enqueued workflows at its end, derived from what was created and claimed since. */
            waiting: number;
        };
        PlannedRetention: {
            /** @description Of inputs, outputs and errors. */
            characters: number;
            /** @description Stored events. */
            events: number;
            name: string | null;
            oldestEndedAt: number;
            /** @enum {string} */
            status: "PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED";
            workflows: number;
        };
        Queue: {
            applicationName?: string;
            globalConcurrency?: number;
            /** @description Defined in this process, not in the database. */
            isInMemory: boolean;
            isPaused: boolean;
            minPollingIntervalMs?: number;
            name: string;
            partitionConcurrency?: number;
            partitionQueue?: boolean;
            partitionRateLimit?: components["schemas"]["RateLimit"];
            partitionWorkerConcurrency?: number;
            pausedAt: number | null;
            priorityEnabled?: boolean;
            rateLimit?: components["schemas"]["RateLimit"];
            releaseSlotWhileParked?: boolean;
            workerConcurrency?: number;
        };
        QueueDetails: {
            /** @description Over the last ten minutes. */
            claimedPerMinute: number;
            /** @description Workflows waiting for their delay to end. */
            delayed: number;
            /** @description Workflows waiting to be claimed. */
            enqueued: number;
            /** @description The busiest first. */
            executors: {
                executorID: string;
                running: number;
            }[];
            oldestWaitMs: number | null;
            partitionCount: number;
            partitionKey?: string | null;
            /** @description The largest first, at most 100. */
            partitions: components["schemas"]["QueueStats"][];
            queueName: string;
            /** @description Workflows that were claimed and have not ended. */
            running: number;
        };
        QueueStats: {
            /** @description Workflows waiting for their delay to end. */
            delayed: number;
            /** @description Workflows waiting to be claimed. */
            enqueued: number;
            oldestWaitMs: number | null;
            partitionKey?: string | null;
            queueName: string;
            /** @description Workflows that were claimed and have not ended. */
            running: number;
        };
        RateLimit: {
            limitPerPeriod: number;
            periodSec: number;
        };
        ReceivedGroup: {
            count: number;
            error: string;
            fingerprint: string;
            firstReceivedAt: number;
            functionName: string;
            lastReceivedAt: number;
            sampleID: string;
        };
        ReceivedLetter: {
            archivedAt: number | null;
            error: string;
            functionName: string;
            id: string;
            message: components["schemas"]["Value"];
            receivedAt: number;
        };
        RetentionPolicy: {
            /** @description How long workflows that succeeded are kept, such as `30 days`, or in ms. */
            completed?: unknown;
            /** @description The same for workflows that failed or were cancelled. */
            failed?: unknown;
            /** @description The same by the name of a function, instead of the above. */
            perWorkflow?: unknown;
        };
        Schedule: {
            applicationName?: string;
            automaticBackfill: boolean;
            context: components["schemas"]["Value"];
            cronTimezone: string | null;
            jitterMs: number;
            lastFiredAt: string | null;
            overlap: string;
            queueName: string | null;
            schedule: string;
            scheduleId: string;
            scheduleName: string;
            status: string;
            workflowClassName: string;
            workflowName: string;
        };
        ScheduleDefinition: {
            applicationName?: string;
            /** @description Runs occurrences at launch that were missed while no process was running. */
            automaticBackfill?: boolean;
            /** @description Passed to the workflow. */
            context?: unknown;
            /** @description An IANA name. Defaults to UTC. */
            cronTimezone?: string;
            /** @description The maximum random delay. */
            jitterMs?: number;
            /** @enum {string} */
            overlap?: "allow" | "skip" | "cancelPrevious";
            queueName?: string;
            /** @description A cron expression. */
            schedule: string;
            scheduleName: string;
            workflowClassName?: string;
            workflowName: string;
        };
        Session: {
            appName: string | null;
            authenticated: boolean;
            csrf: string | null;
            dialect: ("postgres" | "sqlite") | null;
            expiresAt: number | null;
            /** @description Changes are refused. */
            readOnly: boolean;
            version: string | null;
        };
        Step: {
            childWorkflowID: string | null;
            completedAtEpochMs?: number;
            error?: components["schemas"]["Value"];
            functionID: number;
            name: string;
            output?: components["schemas"]["Value"];
            startedAtEpochMs?: number;
        };
        Stream: {
            isClosed: boolean;
            key: string;
            /** @description How many values it has. */
            length: number;
        };
        StreamPage: {
            nextAfter: number | null;
            values: {
                offset: number;
                value: components["schemas"]["Value"];
            }[];
        };
        Timeline: {
            completedAt: number | null;
            createdAt: number;
            /** @description What happened to the workflow as a whole. */
            marks: {
                actor: string | null;
                at: number;
                attempt: number | null;
                executor: string | null;
                type: string;
            }[];
            nextAfter: number | null;
            /** @description By the database's clock. */
            now: number;
            rows: components["schemas"]["TimelineRow"][];
            startedAt: number | null;
            /** @enum {string} */
            status: "PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED";
            workflowID: string;
        };
        TimelineRow: {
            childWorkflowID: string | null;
            dueAt: number | null;
            endedAt: number | null;
            /** @enum {string} */
            kind: "step" | "sleep" | "wait" | "child" | "message" | "event" | "stream" | "operation";
            name: string;
            /** @description Its failed attempts. */
            retries: {
                at: number;
                attempt: number;
                error: string | null;
            }[];
            startedAt: number | null;
            /** @enum {string} */
            state: "done" | "failed" | "running" | "stopped";
            step: number;
        };
        /** @description A stored value. If `json` is not exact, it is the nearest JSON form, and `text` is how Node prints it. If it is truncated, parts were left out because the value is too large. */
        Value: {
            isExact: boolean;
            isTruncated?: boolean;
            json: unknown;
            text?: string;
        };
        Version: {
            applicationName?: string;
            createdAt: number;
            versionId: string;
            versionName: string;
            versionTimestamp: number;
        };
        VersionWork: {
            applicationName: string | null;
            delayed: number;
            enqueued: number;
            /** @description Live processes of this version. */
            executors: number;
            isLatest: boolean;
            running: number;
            versionName: string | null;
        };
        Workflow: {
            applicationID?: string;
            applicationName?: string;
            applicationVersion?: string;
            assumedRole?: string;
            attributes?: Record<string, never>;
            authenticatedRoles?: string[];
            authenticatedUser?: string;
            cancelledBy?: string;
            cancelReason?: string;
            completedAt?: number;
            createdAt: number;
            deadlineEpochMS?: number;
            deduplicationID?: string;
            delayUntilEpochMS?: number;
            dequeuedAt?: number;
            error?: components["schemas"]["Value"];
            executorId?: string;
            forkedFrom?: string;
            input?: components["schemas"]["Value"];
            output?: components["schemas"]["Value"];
            parentWorkflowID?: string;
            priority: number;
            queueName?: string;
            queuePartitionKey?: string;
            recoveryAttempts?: number;
            scheduleName?: string;
            /** @enum {string} */
            status: "PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED";
            timeoutMS?: number;
            updatedAt?: number;
            wasForkedFrom: boolean;
            workflowClassName: string;
            workflowConfigName: string;
            workflowID: string;
            workflowName: string;
        };
        WorkflowID: {
            workflowID: string;
        };
        WorkflowIDs: {
            workflowIDs: string[];
        };
        WorkflowPage: {
            nextCursor: string | null;
            workflows: components["schemas"]["Workflow"][];
        };
    };
    responses: {
        /** @description The request is invalid; the message names the field. */
        Refused400: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The token is missing or wrong. */
        Refused401: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The access is read-only, or the request comes from another site. */
        Refused403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Not found. */
        Refused404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The current state does not allow it. */
        Refused409: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The body is too large. */
        Refused413: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The media type of the body is not supported. */
        Refused415: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too many failed logins. */
        Refused429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Internal error; see the log of the process. */
        Refused500: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The database cannot be reached, or the process is not ready. */
        Refused503: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    postAggregatesSteps: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    applicationName?: string[];
                    /** Format: date-time */
                    completedAfter?: string;
                    /** Format: date-time */
                    completedBefore?: string;
                    functionName?: string[];
                    groupByFunctionName?: boolean;
                    groupByStatus?: boolean;
                    selectCount?: boolean;
                    selectMaxDurationMs?: boolean;
                    status?: ("SUCCESS" | "ERROR")[];
                    /** @description Groups by completion time. */
                    timeBucketSizeMs?: number;
                    workflowIdPrefix?: string[];
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        aggregates: {
                            count: number | null;
                            group: {
                                [key: string]: string | null;
                            };
                            maxDurationMs: number | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postAggregatesWorkflows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    applicationName?: string[];
                    applicationVersion?: string[];
                    /** @description Only workflows with these attributes; JSON in a query string. */
                    attributes?: Record<string, never>;
                    authenticatedUser?: string[];
                    /** Format: date-time */
                    completedAfter?: string;
                    /** Format: date-time */
                    completedBefore?: string;
                    /** Format: date-time */
                    dequeuedAfter?: string;
                    /** Format: date-time */
                    dequeuedBefore?: string;
                    /** Format: date-time */
                    endTime?: string;
                    executorId?: string[];
                    forkedFrom?: string[];
                    groupByApplicationName?: boolean;
                    groupByApplicationVersion?: boolean;
                    groupByExecutorId?: boolean;
                    groupByName?: boolean;
                    groupByQueueName?: boolean;
                    groupByStatus?: boolean;
                    hasParent?: boolean;
                    parentWorkflowID?: string[];
                    queueName?: string[];
                    /** @description Only workflows in a queue: enqueued, delayed or running. */
                    queuesOnly?: boolean;
                    scheduleName?: string[];
                    selectCount?: boolean;
                    selectMaxQueueWaitMs?: boolean;
                    selectMaxTotalLatencyMs?: boolean;
                    selectMinCreatedAt?: boolean;
                    /** Format: date-time */
                    startTime?: string;
                    status?: ("PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED")[];
                    /** @description Groups by creation time. */
                    timeBucketSizeMs?: number;
                    wasForkedFrom?: boolean;
                    workflowID?: string[];
                    workflowIDPrefix?: string[];
                    workflowName?: string[];
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        aggregates: {
                            count: number | null;
                            group: {
                                [key: string]: string | null;
                            };
                            maxQueueWaitMs: number | null;
                            maxTotalLatencyMs: number | null;
                            minCreatedAt: number | null;
                        }[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postApplicationsRename: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Also moves rows that belong to no application. */
                    adoptUnclaimedRows?: boolean;
                    batchSize?: number | null;
                    newName: string;
                    /** @description If omitted, only rows of no application are moved. */
                    oldName?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        queues: number;
                        schedules: number;
                        steps: number;
                        versions: number;
                        workflows: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getArchivedWorkflowsWorkflowID: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getAttention: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["AttentionItem"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postBulkCancel: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    cancelChildren?: boolean;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                    workflowIDs: string[];
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postBulkDelete: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Written to the log. */
                    actor?: string;
                    deleteChildren?: boolean;
                    /** @description Why. Written to the log. */
                    reason?: string;
                    workflowIDs: string[];
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postBulkFork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    /** @description Defaults to the original's version. */
                    applicationVersion?: string;
                    forks: {
                        newWorkflowID?: string;
                        startStep: number;
                        workflowID: string;
                    }[];
                    /** @description Defaults to the internal queue. */
                    queueName?: string;
                    queuePartitionKey?: string;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                    /** @description Maps IDs of children to those that replace them in the copied steps. */
                    replacementChildren?: {
                        [key: string]: string;
                    };
                    timeoutMS?: number;
                };
            };
        };
        responses: {
            /** @description The result. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postBulkForkFromFailure: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    /** @description Defaults to the original's version. */
                    applicationVersion?: string;
                    /** @description The last failed step, or the last step if none failed. */
                    fromLastFailure?: boolean;
                    fromLastStep?: boolean;
                    fromStep?: number;
                    /** @description The last step of this name. */
                    fromStepName?: string;
                    /** @description Defaults to the internal queue. */
                    queueName?: string;
                    queuePartitionKey?: string;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                    timeoutMS?: number;
                    workflowIDs: string[];
                };
            };
        };
        responses: {
            /** @description The result. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postBulkResume: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    /** @description Defaults to the internal queue. */
                    queueName?: string;
                    queuePartitionKey?: string;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                    workflowIDs: string[];
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getEvents: {
        parameters: {
            query?: {
                queueName?: string[];
                status?: ("PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED")[];
                workflowID?: string[];
                workflowName?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getExecutors: {
        parameters: {
            query?: {
                isAlive?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        executors: components["schemas"]["Executor"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postExecutorsExecutorIDRecover: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                executorID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        workflowIDs: string[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getExport: {
        parameters: {
            query?: {
                applicationName?: string[];
                applicationVersion?: string[];
                attributes?: string;
                authenticatedUser?: string[];
                completedAfter?: string;
                completedBefore?: string;
                dequeuedAfter?: string;
                dequeuedBefore?: string;
                endTime?: string;
                executorId?: string[];
                exportChildren?: boolean;
                forkedFrom?: string[];
                hasParent?: boolean;
                isFork?: boolean;
                limit?: number;
                parentWorkflowID?: string[];
                queueName?: string[];
                queuesOnly?: boolean;
                scheduleName?: string[];
                startTime?: string;
                status?: ("PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED")[];
                wasForkedFrom?: boolean;
                workflowID?: string[];
                workflowIDPrefix?: string[];
                workflowName?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getHistory: {
        parameters: {
            query?: {
                after?: string;
                limit?: number;
                since?: number;
                types?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        events: components["schemas"]["HistoryEvent"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postImport: {
        parameters: {
            query?: {
                activeWorkflows?: "cancel" | "enqueue";
                onConflict?: "fail" | "skip";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-ndjson": string;
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        imported: number;
                        skipped: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    putIndexesIndex: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                index: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    deleteIndexesIndex: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                index: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getInfo: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        applicationName: string | null;
                        applicationVersion: string | null;
                        /** @enum {string} */
                        database: "postgres" | "sqlite";
                        executorID: string | null;
                        library: string;
                        version: string;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postMaintenanceGarbageCollect: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    batchSize?: number;
                    /** @description Older workflows are deleted. */
                    cutoffEpochTimestampMs?: number;
                    /** @description The number of newest workflows to keep. */
                    rowsThreshold?: number;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        orphans: number;
                        workflows: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postMaintenanceGlobalTimeout: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    cutoffEpochTimestampMs: number;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cancelled: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getMetrics: {
        parameters: {
            query: {
                applicationName?: string[];
                endTime: string;
                startTime: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        metrics: {
                            metricName: string;
                            /** @enum {string} */
                            metricType: "workflow_count" | "step_count";
                            value: number;
                        }[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOpenapiJson: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": Record<string, never>;
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOutboxes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        outboxes: string[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postOutboxesOutboxBulkArchive: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Needed to mean all dead letters. */
                    all?: boolean;
                    /**
                     * @description Defaults to no.
                     * @enum {string}
                     */
                    archived?: "yes" | "no" | "both";
                    /**
                     * Format: date-time
                     * @description Failed before this time.
                     */
                    before?: string;
                    /** @description Only counts. */
                    dryRun?: boolean;
                    /** @description A group of equal failures. */
                    fingerprint?: string;
                    ids?: string[];
                    limit?: number;
                    reason?: string;
                    /**
                     * Format: date-time
                     * @description Failed at this time or later.
                     */
                    since?: string;
                    /** @description The topic; with `#` and its name for those of one subscription. */
                    topic?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        archived: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postOutboxesOutboxBulkDiscard: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Needed to mean all dead letters. */
                    all?: boolean;
                    /**
                     * @description Defaults to no.
                     * @enum {string}
                     */
                    archived?: "yes" | "no" | "both";
                    /**
                     * Format: date-time
                     * @description Failed before this time.
                     */
                    before?: string;
                    /** @description Only counts. */
                    dryRun?: boolean;
                    /** @description A group of equal failures. */
                    fingerprint?: string;
                    ids?: string[];
                    limit?: number;
                    reason?: string;
                    /**
                     * Format: date-time
                     * @description Failed at this time or later.
                     */
                    since?: string;
                    /** @description The topic; with `#` and its name for those of one subscription. */
                    topic?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        discarded: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postOutboxesOutboxBulkRequeue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Needed to mean all dead letters. */
                    all?: boolean;
                    /**
                     * @description Defaults to no.
                     * @enum {string}
                     */
                    archived?: "yes" | "no" | "both";
                    /**
                     * Format: date-time
                     * @description Failed before this time.
                     */
                    before?: string;
                    delayMs?: number;
                    /** @description Only counts. */
                    dryRun?: boolean;
                    /** @description A group of equal failures. */
                    fingerprint?: string;
                    ids?: string[];
                    limit?: number;
                    reason?: string;
                    /**
                     * Format: date-time
                     * @description Failed at this time or later.
                     */
                    since?: string;
                    /** @description The topic; with `#` and its name for those of one subscription. */
                    topic?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        requeued: number;
                        skipped: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOutboxesOutboxDeadLetterGroups: {
        parameters: {
            query?: {
                archived?: "yes" | "no" | "both";
                before?: string;
                fingerprint?: string;
                limit?: number;
                reason?: string;
                since?: string;
                topic?: string;
            };
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        groups: components["schemas"]["DeadLetterGroup"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOutboxesOutboxDeadLetters: {
        parameters: {
            query?: {
                archived?: "yes" | "no" | "both";
                before?: string;
                cursor?: string;
                fingerprint?: string;
                limit?: number;
                reason?: string;
                since?: string;
                topic?: string;
            };
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cursor: string | null;
                        letters: components["schemas"]["DeadLetter"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOutboxesOutboxDeadLettersId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeadLetter"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postOutboxesOutboxDeadLettersIdRequeue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Replaces the body. */
                    body?: unknown;
                    delayMs?: number;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        requeued: number;
                        skipped: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOutboxesOutboxHealth: {
        parameters: {
            query?: {
                maxDeadLetters?: number;
                maxLagMs?: number;
                schema?: boolean;
            };
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OutboxHealth"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOutboxesOutboxSchema: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        findings: components["schemas"]["OutboxFinding"][];
                        ok: boolean;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOutboxesOutboxStatistics: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                outbox: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        queues: components["schemas"]["OutboxQueue"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postOutboxesOutboxTopicsTopicPause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                outbox: string;
                topic: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postOutboxesOutboxTopicsTopicResume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                outbox: string;
                topic: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getOverview: {
        parameters: {
            query?: {
                window?: "1h" | "24h";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getQueueStats: {
        parameters: {
            query?: {
                byPartition?: boolean;
                queueName?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        queues: components["schemas"]["QueueStats"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getQueues: {
        parameters: {
            query?: {
                applicationName?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        queues: components["schemas"]["Queue"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getQueuesName: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    putQueuesName: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    applicationName?: string;
                    globalConcurrency?: number;
                    minPollingIntervalMs?: number;
                    /** @enum {string} */
                    onConflict?: "always_update" | "never_update" | "update_if_latest_version";
                    partitionConcurrency?: number;
                    partitionQueue?: boolean;
                    partitionRateLimit?: {
                        limitPerPeriod: number;
                        periodSec: number;
                    };
                    partitionWorkerConcurrency?: number;
                    priorityEnabled?: boolean;
                    rateLimit?: {
                        limitPerPeriod: number;
                        periodSec: number;
                    };
                    releaseSlotWhileParked?: boolean;
                    workerConcurrency?: number;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    deleteQueuesName: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    patchQueuesName: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    globalConcurrency?: number | null;
                    minPollingIntervalMs?: number;
                    partitionConcurrency?: number | null;
                    partitionQueue?: boolean;
                    partitionRateLimit?: {
                        limitPerPeriod: number;
                        periodSec: number;
                    } | null;
                    partitionWorkerConcurrency?: number | null;
                    rateLimit?: {
                        limitPerPeriod: number;
                        periodSec: number;
                    } | null;
                    releaseSlotWhileParked?: boolean;
                    workerConcurrency?: number | null;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getQueuesNameDetails: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueDetails"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postQueuesNamePause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postQueuesNameResume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postReceiversBulkArchive: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Needed to mean all dead letters. */
                    all?: boolean;
                    /** @description Archived ones only. Defaults to false. */
                    archived?: boolean;
                    /**
                     * Format: date-time
                     * @description Received before this time.
                     */
                    before?: string;
                    /** @description Only counts. */
                    dryRun?: boolean;
                    /** @description A group of equal failures. */
                    fingerprint?: string;
                    /** @description The workflow function that the messages were for. */
                    functionName?: string;
                    ids?: string[];
                    limit?: number;
                    /**
                     * Format: date-time
                     * @description Received at this time or later.
                     */
                    since?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        archived: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postReceiversBulkDiscard: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Needed to mean all dead letters. */
                    all?: boolean;
                    /** @description Archived ones only. Defaults to false. */
                    archived?: boolean;
                    /**
                     * Format: date-time
                     * @description Received before this time.
                     */
                    before?: string;
                    /** @description Only counts. */
                    dryRun?: boolean;
                    /** @description A group of equal failures. */
                    fingerprint?: string;
                    /** @description The workflow function that the messages were for. */
                    functionName?: string;
                    ids?: string[];
                    limit?: number;
                    /**
                     * Format: date-time
                     * @description Received at this time or later.
                     */
                    since?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        discarded: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getReceiversDeadLetterGroups: {
        parameters: {
            query?: {
                archived?: boolean;
                before?: string;
                fingerprint?: string;
                functionName?: string;
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        groups: components["schemas"]["ReceivedGroup"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getReceiversDeadLetters: {
        parameters: {
            query?: {
                archived?: boolean;
                before?: string;
                cursor?: string;
                fingerprint?: string;
                functionName?: string;
                limit?: number;
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        cursor: string | null;
                        letters: components["schemas"]["ReceivedLetter"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getReceiversDeadLettersId: {
        parameters: {
            query?: {
                functionName?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReceivedLetter"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getRetention: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Workflows are archived before. */
                        isArchiving: boolean;
                        policy: components["schemas"]["RetentionPolicy"] | null;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postRetentionPlan: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RetentionPolicy"];
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        plan: components["schemas"]["PlannedRetention"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getSchedulePreview: {
        parameters: {
            query: {
                count?: number;
                cronTimezone?: string;
                schedule: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        nextRuns: string[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getSchedules: {
        parameters: {
            query?: {
                applicationName?: string[];
                scheduleNamePrefix?: string[];
                status?: ("ACTIVE" | "PAUSED")[];
                workflowName?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        schedules: components["schemas"]["Schedule"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    putSchedules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    schedules: components["schemas"]["ScheduleDefinition"][];
                };
            };
        };
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postSchedules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ScheduleDefinition"];
            };
        };
        responses: {
            /** @description The result. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getSchedulesName: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    deleteSchedulesName: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    patchSchedulesName: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Runs occurrences at launch that were missed while no process was running. */
                    automaticBackfill?: boolean;
                    /** @description Passed to the workflow. */
                    context?: unknown;
                    cronTimezone?: string | null;
                    /** @description The maximum random delay. */
                    jitterMs?: number;
                    /** @enum {string} */
                    overlap?: "allow" | "skip" | "cancelPrevious";
                    queueName?: string | null;
                    schedule?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Schedule"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postSchedulesNameBackfill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: date-time */
                    end: string;
                    /** Format: date-time */
                    start: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        workflowIDs: string[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postSchedulesNameBackfillPreview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** Format: date-time */
                    end: string;
                    /** Format: date-time */
                    start: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        count: number;
                        /** @description There are more than 10000; the rest is not counted. */
                        isTruncated: boolean;
                        /** @description The first 100. */
                        occurrences: string[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getSchedulesNameNextRuns: {
        parameters: {
            query?: {
                count?: number;
            };
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        nextRuns: string[];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postSchedulesNamePause: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postSchedulesNameResume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postSchedulesNameTrigger: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowID"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    token: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    deleteSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getVersionWork: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        versions: components["schemas"]["VersionWork"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getVersions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        versions: components["schemas"]["Version"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getVersionsLatest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Version"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    putVersionsLatest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    applicationName?: string;
                    versionName: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Version"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowCount: {
        parameters: {
            query?: {
                applicationName?: string[];
                applicationVersion?: string[];
                attributes?: string;
                authenticatedUser?: string[];
                completedAfter?: string;
                completedBefore?: string;
                dequeuedAfter?: string;
                dequeuedBefore?: string;
                endTime?: string;
                exactMax?: number;
                executorId?: string[];
                forkedFrom?: string[];
                hasParent?: boolean;
                isFork?: boolean;
                parentWorkflowID?: string[];
                queueName?: string[];
                queuesOnly?: boolean;
                scheduleName?: string[];
                startTime?: string;
                status?: ("PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED")[];
                wasForkedFrom?: boolean;
                workflowID?: string[];
                workflowIDPrefix?: string[];
                workflowName?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        count: number;
                        /** @description There are more than `exactMax`, about this many. On SQLite, at least this many. */
                        isEstimate: boolean;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflows: {
        parameters: {
            query?: {
                applicationName?: string[];
                applicationVersion?: string[];
                attributes?: string;
                authenticatedUser?: string[];
                completedAfter?: string;
                completedBefore?: string;
                cursor?: string;
                dequeuedAfter?: string;
                dequeuedBefore?: string;
                endTime?: string;
                executorId?: string[];
                forkedFrom?: string[];
                hasParent?: boolean;
                isFork?: boolean;
                limit?: number;
                loadInput?: boolean;
                loadOutput?: boolean;
                parentWorkflowID?: string[];
                queueName?: string[];
                queuesOnly?: boolean;
                scheduleName?: string[];
                sortDesc?: boolean;
                startTime?: string;
                status?: ("PENDING" | "SUCCESS" | "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED" | "CANCELLED" | "ENQUEUED" | "DELAYED")[];
                wasForkedFrom?: boolean;
                workflowID?: string[];
                workflowIDPrefix?: string[];
                workflowName?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowPage"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postWorkflows: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    applicationName?: string;
                    /** @description Defaults to the latest. */
                    appVersion?: string;
                    /** @description The arguments of the workflow. */
                    args?: unknown[];
                    attributes?: Record<string, never>;
                    authenticatedRoles?: string[];
                    authenticatedUser?: string;
                    deduplicationID?: string;
                    delaySeconds?: number;
                    /** @enum {string} */
                    duplicationPolicy?: "reject" | "return-existing";
                    /** @description Only with serializationType portable. */
                    namedArgs?: Record<string, never>;
                    priority?: number;
                    queueName: string;
                    queuePartitionKey?: string;
                    /** @enum {string} */
                    serializationType?: "native" | "portable";
                    workflowClassName?: string;
                    workflowConfigName?: string;
                    /** @description Defaults to a new one. */
                    workflowID?: string;
                    /** @enum {string} */
                    workflowIDReusePolicy?: "return-existing" | "reject";
                    workflowName: string;
                    workflowTimeoutMS?: number;
                };
            };
        };
        responses: {
            /** @description The result. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowID"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowID: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Workflow"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    deleteWorkflowsWorkflowID: {
        parameters: {
            query?: {
                actor?: string;
                deleteChildren?: boolean;
                reason?: string;
            };
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    patchWorkflowsWorkflowIDAttributes: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    attributes: Record<string, never>;
                };
            };
        };
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postWorkflowsWorkflowIDCancel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    /** @description Also cancels its descendants. */
                    cancelChildren?: boolean;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDComparison: {
        parameters: {
            query: {
                with: string;
            };
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        differences: components["schemas"]["HistoryDifference"][];
                        /** @description How many steps are the same. */
                        same: number;
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    putWorkflowsWorkflowIDDelay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    /** @description From now; 0 makes it due now. */
                    delaySeconds?: number;
                    delayUntilEpochMS?: number;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDEvents: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description Events by key. */
                        events: {
                            [key: string]: components["schemas"]["Value"];
                        };
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDExplanation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Explanation"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postWorkflowsWorkflowIDFork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    /** @description Defaults to the original's version. */
                    applicationVersion?: string;
                    newWorkflowID?: string;
                    /** @description Defaults to the internal queue. */
                    queueName?: string;
                    queuePartitionKey?: string;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                    /** @description Maps IDs of children to those that replace them in the copied steps. */
                    replacementChildren?: {
                        [key: string]: string;
                    };
                    /** @description The first step that the fork runs again. */
                    startStep: number;
                    timeoutMS?: number;
                };
            };
        };
        responses: {
            /** @description The result. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowID"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDHistory: {
        parameters: {
            query?: {
                after?: string;
                limit?: number;
                payloads?: boolean;
                types?: string[];
            };
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        events: components["schemas"]["HistoryEvent"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDMessages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        messages: components["schemas"]["Message"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postWorkflowsWorkflowIDMessages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Calls with the same key send the message once. */
                    idempotencyKey?: string;
                    message: unknown;
                    /** @enum {string} */
                    serializationType?: "native" | "portable";
                    topic?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    putWorkflowsWorkflowIDPriority: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    priority: number;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Change"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postWorkflowsWorkflowIDResume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    /** @description Defaults to the internal queue. */
                    queueName?: string;
                    queuePartitionKey?: string;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                };
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkflowIDs"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    postWorkflowsWorkflowIDRewind: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description Who asks for it. Kept in its history. */
                    actor?: string;
                    applicationVersion?: string;
                    /** @description Defaults to the internal queue. */
                    queueName?: string;
                    queuePartitionKey?: string;
                    /** @description Why. Kept in its history. */
                    reason?: string;
                    startStep?: number;
                };
            };
        };
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDSteps: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
            };
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        steps: components["schemas"]["Step"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDStreamValues: {
        parameters: {
            query: {
                after?: number;
                key: string;
                limit?: number;
            };
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StreamPage"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDStreams: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        streams: components["schemas"]["Stream"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDTimeline: {
        parameters: {
            query?: {
                after?: number;
                limit?: number;
            };
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeline"];
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDTree: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description There are more. */
                        isTruncated: boolean;
                        workflows: components["schemas"]["FamilyMember"][];
                    };
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
    getWorkflowsWorkflowIDValue: {
        parameters: {
            query: {
                key?: string;
                of: "input" | "output" | "error" | "event";
                step?: number;
            };
            header?: never;
            path: {
                workflowID: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            400: components["responses"]["Refused400"];
            401: components["responses"]["Refused401"];
            403: components["responses"]["Refused403"];
            404: components["responses"]["Refused404"];
            409: components["responses"]["Refused409"];
            413: components["responses"]["Refused413"];
            415: components["responses"]["Refused415"];
            429: components["responses"]["Refused429"];
            500: components["responses"]["Refused500"];
            503: components["responses"]["Refused503"];
        };
    };
}
