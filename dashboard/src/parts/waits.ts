// What a workflow waits for that is pending and out of memory.
import type { Schemas } from '../api/client';
import { visibleText } from './format';

type WaitingFor = Schemas['WaitingFor'];

/** As in `message approval or 2 more`; undefined for a workflow that runs. */
export function waitsText(waits: readonly WaitingFor[] | undefined): string | undefined {
  const [first, ...others] = waits ?? [];
  if (!first) return undefined;
  return visibleText(others.length === 0 ? awaitedText(first) : `${awaitedText(first)} or ${others.length} more`);
}

function awaitedText({ kind, topic, key, workflowID, stepID }: WaitingFor): string {
  switch (kind) {
    case 'sleep':
      return 'sleep';
    case 'retry':
      return `retry of step ${stepID}`;
    case 'message':
      return topic === null ? 'message' : `message ${topic}`;
    case 'event':
      return `event ${key} of ${workflowID}`;
    case 'workflow':
      return `workflow ${workflowID}`;
  }
}
