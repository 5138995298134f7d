// Turns a batch of messages into workflows that are ready to be enqueued, and finds the dead letters among them.
import { DBOSInvalidWorkflowInputError, UndecodableMessageError } from '../../kernel/errors/errors.js';
import { filledName, messageOf, shown, storageProblem } from '../../kernel/check/validation.js';
import type { PreparedWorkflow, Receiving, UserFunction } from '../../run/plugin.js';
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
    workflowID = idOf(options.workflowID?.(message) ?? adapter.workflowIDOf(message, options));
    const queuePartitionKey = orderingKey && storable(orderingKey(message) || NO_KEY, 'ordering key');
    const args: unknown = options.decode ? await options.decode(message) : adapter.decode(message);
    if (!Array.isArray(args)) throw new UndecodableMessageError('decode must return an array of arguments.');
    return { workflowID, queuePartitionKey, args };
  } catch (error) {
    return { dead: { message, error: toError(error), workflowID } };
  }
}

/** One ID or key that the database refuses would fail the commit of the whole batch, over and over. */
function storable(name: unknown, kind: string): string {
  const problem = filledName.find(name);
  if (problem === undefined) return name as string;
  throw new UndecodableMessageError(messageOf(problem, `The ${kind} of the message`));
}

function idOf(id: unknown): string {
  if (id !== undefined && id !== null && id !== '') return storable(id, 'ID');
  throw new UndecodableMessageError(
    'The message has no ID, so redeliveries cannot be recognised. Have the sender set one, or set the option workflowID.',
  );
}

/** Throws errors that are not the message's fault, such as those of the database. */
async function prepare<Message, Options extends ConsumerOptions<Message>>(
  receiving: Receiving,
  { fn, queueName }: ConsumerSettings<Message, Options>,
  message: Message,
  { workflowID, queuePartitionKey, args }: Decoded,
): Promise<PreparedMessage<Message>> {
  try {
    const workflow = await receiving.prepare(fn, args, { queueName, workflowID, queuePartitionKey });
    const problem = storageProblem(workflow.input);
    if (problem) throw new UndecodableMessageError(messageOf({ ...problem, got: undefined }, 'The encoded arguments'));
    return { workflow };
  } catch (error) {
    if (error instanceof DBOSInvalidWorkflowInputError || error instanceof UndecodableMessageError)
      return { dead: { message, error, workflowID } };
    throw error;
  }
}

export function toError(error: unknown): Error {
  if (error instanceof Error) return error;
  return new UndecodableMessageError(typeof error === 'string' ? error : shown(error));
}

/** The error message as a sentence. */
export function reasonOf(error: unknown): string {
  const { message, code } = toError(error) as Error & { readonly code?: unknown };
  const text = message || (typeof code === 'string' ? code : 'something has failed');
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
