// Older releases of DBOS sent a message from outside of workflows in a workflow made for it. What such a program left
// unfinished is finished here, once it is recovered or adopted.
import type { WorkflowSerializationFormat } from '../../kernel/codec/serializer.js';
import type { WorkflowRegistration } from '../../run/registration/registry.js';
import { workflowCode } from '../../run/operation.js';
import { send } from './messages.run.js';

/** The last part is the name of the function, which a send did not have. */
const NAME = 'temp_workflow-send-undefined';

async function sendAgain(
  destinationID: string,
  message: unknown,
  topic?: string | null,
  serialization?: WorkflowSerializationFormat | null,
): Promise<void> {
  const { runtime } = workflowCode(NAME);
  await send(runtime, {
    destinationID,
    message,
    topic: topic ?? undefined,
    serializationType: serialization ?? undefined,
  });
}

export const temporarySend: WorkflowRegistration = {
  name: NAME,
  kind: 'workflow',
  config: {},
  isInstance: false,
  isMethod: false,
  origFunction: sendAgain,
  registeredFunction: sendAgain,
  ownerClass: undefined,
  givenClassName: undefined,
  external: new Map(),
  parameters: [],
  interceptors: [],
  registeredAt: '',
};
