// `everstep/eventreceiver`: what plugins use that turn messages from elsewhere into workflows.
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
