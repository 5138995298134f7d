// `everstep/eventreceiver`: for plugins that turn external messages into workflows.
export {
  enqueueWorkflows,
  getOrCreateQueue,
  getQueue,
  isPartitionedQueue,
  prepareEnqueuedWorkflow,
  type PreparedWorkflow,
  type PrepareEnqueuedWorkflowOptions,
  registerInternalQueue,
  registerPollerQueue,
} from './faces/library/event-receiver.js';
