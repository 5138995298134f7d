// What keeps commits in flight apart. Two items with a key in common are never in two commits at a time, and are written in
// order of submission. The keys of an item are all that its statements lock or depend on, so no commit waits for another one
// of its process, and none is written before what it rests on:
//
//   a workflow ──► everything of its runs, its own start, messages to it, and the starts of its children
//   a queue ──► workflows are enqueued in order, and the holder of a deduplication ID is known
import type { NewWorkflow } from '../rows/workflows.js';
import { type Item, writerOf } from './write-group.js';

export function keysOf(item: Item): string[] {
  switch (item.kind) {
    case 'start':
      return keysOfStart(item.start);
    case 'child':
      return [...keysOfStart(item.child.start), item.child.checkpoint.step.workflowID];
    case 'send': {
      const { message, sender } = item.send.sending;
      return sender ? [message.destinationID, sender.workflowID] : [message.destinationID];
    }
    case 'checkpoint':
    case 'receipt':
      return [item.checkpoint.step.workflowID];
    default:
      return [writerOf(item)?.workflowID ?? ''];
  }
}

function keysOfStart({ workflowID, parentWorkflowID, queueName }: NewWorkflow): string[] {
  const keys = [workflowID];
  if (parentWorkflowID !== null) keys.push(parentWorkflowID);
  if (queueName !== null) keys.push(`queue ${queueName}`);
  return keys;
}
