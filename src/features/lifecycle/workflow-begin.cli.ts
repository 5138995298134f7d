// Commands that begin workflows and send them messages.
import type { DBOSClient } from '../../faces/client/client.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { command, type CommandContext, JSON_FLAG, type Output, type Parameter } from '../../faces/cli/command.js';
import { APPLICATION, DATABASE, withClient } from '../../faces/cli/connection.js';
import { duration, flag, json, repeatable, required, text, type Values, wholeNumber } from '../../faces/cli/option.js';
import { longValue, sanitize } from '../../faces/cli/render-context.js';

const CONNECTION = { ...APPLICATION, ...DATABASE, ...JSON_FLAG };
const BEGINNING = {
  arg: repeatable(json('An argument of the workflow; repeat it for more')),
  id: text('ID of the workflow; a second start with it begins nothing', { placeholder: 'ID' }),
  className: text('Class of the workflow, if it is a method', { placeholder: 'CLASS' }),
  timeout: duration('Cancel the workflow after this time'),
  version: text('Application version that runs it', { placeholder: 'VERSION' }),
  wait: flag('Wait for the result and print it'),
  ...CONNECTION,
};
const NAME: Parameter = { name: 'NAME', takes: 'one', about: 'Name of the workflow function' };

type Beginning = Values<typeof BEGINNING>;

interface Placement {
  readonly queueName: string;
  readonly priority?: number;
  readonly delaySeconds?: number;
  readonly deduplicationID?: string;
  readonly queuePartitionKey?: string;
}

function begin(context: CommandContext, name: string, options: Beginning, placement: Placement): Promise<Output> {
  return withClient(context, options, async (_internal, _target, client: DBOSClient) => {
    const handle = await client.enqueue(
      {
        workflowName: name,
        workflowClassName: options.className,
        workflowID: options.id,
        workflowTimeoutMS: options.timeout,
        appVersion: options.version,
        ...placement,
      },
      ...(options.arg ?? []),
    );
    const { workflowID } = handle;
    if (!options.wait) return { json: { workflowID }, text: () => sanitize(workflowID) };
    const result: unknown = await handle.getResult();
    return { json: { workflowID, result }, text: () => `${sanitize(workflowID)}\n${longValue(result)}` };
  });
}

const startCommand = command({
  name: 'workflow start',
  about: 'Start a workflow as soon as a process of the application can run it',
  details: 'A running process claims it from the internal queue, which has no limits.',
  parameter: NAME,
  options: BEGINNING,
  examples: [[`everstep workflow start fulfil --arg '"order-17"' --wait`, 'and print its result']],
  run: (context, { options, args: [name = ''] }) => begin(context, name, options, { queueName: INTERNAL_QUEUE }),
});

const enqueueCommand = command({
  name: 'workflow enqueue',
  about: 'Enqueue a workflow',
  parameter: NAME,
  options: {
    queue: required(text('Queue', { short: 'q', placeholder: 'QUEUE' })),
    priority: wholeNumber('Lower numbers run first'),
    delay: duration('Time before it may be claimed'),
    deduplicationId: text('Refused while another workflow with it waits or runs', { placeholder: 'ID' }),
    partitionKey: text('Partition of a partitioned queue', { placeholder: 'KEY' }),
    ...BEGINNING,
  },
  examples: [[`everstep workflow enqueue mail --queue mails --arg '{"to": 7}' --delay 10m`, 'in ten minutes']],
  run: (context, { options, args: [name = ''] }) => {
    const { queue, priority, delay, deduplicationId, partitionKey } = options;
    return begin(context, name, options, {
      queueName: queue,
      priority,
      delaySeconds: delay === undefined ? undefined : delay / 1000,
      deduplicationID: deduplicationId,
      queuePartitionKey: partitionKey,
    });
  },
});

const sendCommand = command({
  name: 'workflow send',
  about: 'Send a message to a workflow',
  parameter: { name: 'ID', takes: 'one', about: 'ID of a workflow' },
  options: {
    message: required(json('The message')),
    topic: text('Topic that the workflow receives', { placeholder: 'TOPIC' }),
    idempotencyKey: text('Sent once for each key', { placeholder: 'KEY' }),
    ...CONNECTION,
  },
  examples: [[`everstep workflow send 0f3a --topic approval --message '{"ok": true}'`, 'answer a waiting workflow']],
  run: (context, { options, args: [workflowID = ''] }) =>
    withClient(context, options, async (_internal, _target, client) => {
      await client.send(workflowID, options.message, options.topic, options.idempotencyKey);
      return { json: { workflowID, sent: true }, text: () => `Sent to ${sanitize(workflowID)}.` };
    }),
});

export const WORKFLOW_BEGIN_COMMANDS = [startCommand, enqueueCommand, sendCommand];
