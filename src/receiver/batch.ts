// Turns a batch of messages into workflows that are ready to be enqueued, and finds the dead letters among them.
import { DBOSInvalidWorkflowInputError, UndecodableMessageError } from '../model/errors/errors.js';
import type { PreparedWorkflow, Receiving, UserFunction } from '../engine/plugin.js';
import type { Adapter, ConsumerOptions } from './adapter.js';

export interface ConsumerSettings<Message, Options extends ConsumerOptions<Message>> {
  readonly adapter: Adapter<Message, Options>;
  readonly options: Options;
  readonly fn: UserFunction;
  readonly functionName: string;
  readonly queueName: string;
  readonly orderingKey: ConsumerOptions<Message>['orderingKey'];
  readonly batchSize: number;
  readonly maxQueueDepth: number;
}

/** A message that cannot become a workflow. */
export interface DeadMessage<Message> {
  readonly message: Message;
  readonly error: Error;
  readonly workflowID: string | undefined;
}

type PreparedMessage<Message> = { readonly workflow: PreparedWorkflow } | { readonly dead: DeadMessage<Message> };

interface Decoded {
  readonly workflowID: string;
  readonly queuePartitionKey: string | undefined;
  readonly args: readonly unknown[];
}

/** The partition of messages without an ordering key, on a partitioned queue. */
const NO_KEY = '(none)';

export async function prepareBatch<Message, Options extends ConsumerOptions<Message>>(
  receiving: Receiving,
  settings: ConsumerSettings<Message, Options>,
  messages: readonly Message[],
): Promise<{ readonly workflows: PreparedWorkflow[]; readonly dead: DeadMessage<Message>[] }> {
  const prepared = await Promise.all(
    messages.map(async (message): Promise<PreparedMessage<Message>> => {
      const decoded = await decode(settings, message);
      return 'dead' in decoded ? decoded : prepare(receiving, settings, message, decoded);
    }),
  );
  return {
    workflows: prepared.flatMap((one) => ('workflow' in one ? [one.workflow] : [])),
    dead: prepared.flatMap((one) => ('dead' in one ? [one.dead] : [])),
  };
}

async function decode<Message, Options extends ConsumerOptions<Message>>(
  { adapter, options, orderingKey }: ConsumerSettings<Message, Options>,
  message: Message,
): Promise<Decoded | { readonly dead: DeadMessage<Message> }> {
  let workflowID: string | undefined;
  try {
    workflowID = options.workflowID?.(message) ?? adapter.workflowIDOf(message, options);
    if (workflowID === undefined || workflowID.trim() === '') {
      throw new UndecodableMessageError(
        'The message has no ID, so redeliveries cannot be recognised. Have the sender set one, or set the option workflowID.',
      );
    }
    const queuePartitionKey = orderingKey && (orderingKey(message) || NO_KEY);
    const args = options.decode ? await options.decode(message) : adapter.decode(message);
    return { workflowID, queuePartitionKey, args };
  } catch (error) {
    return { dead: { message, error: toError(error), workflowID } };
  }
}

/** Throws errors that are not the message's fault, such as those of the database. */
async function prepare<Message, Options extends ConsumerOptions<Message>>(
  receiving: Receiving,
  { fn, queueName }: ConsumerSettings<Message, Options>,
  message: Message,
  { workflowID, queuePartitionKey, args }: Decoded,
): Promise<PreparedMessage<Message>> {
  try {
    return { workflow: await receiving.prepare(fn, args, { queueName, workflowID, queuePartitionKey }) };
  } catch (error) {
    if (error instanceof DBOSInvalidWorkflowInputError) return { dead: { message, error, workflowID } };
    throw error;
  }
}

export function toError(error: unknown): Error {
  return error instanceof Error ? error : new UndecodableMessageError(String(error));
}

/** The error message as a sentence. */
export function reasonOf(error: unknown): string {
  const { message, code } = toError(error) as Error & { readonly code?: unknown };
  const text = message || (typeof code === 'string' ? code : 'something has failed');
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
