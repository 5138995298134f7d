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
} from './facade/event-receiver.js';
