// Publishes to NATS JetStream: a message has arrived when its stream acknowledges it. The stream drops a repeated message
// ID within its duplicate window.
import type { Duration } from '../../base/duration.js';
import type { JetStreamClient } from '@nats-io/jetstream';
import { headers as natsHeaders, type MsgHdrs } from '@nats-io/transport-node';
import {
  bufferOf,
  OK,
  type PerMessage,
  type RelayMessage,
  type RelayResult,
  type RelayTarget,
  settingOf,
  targetOptions,
  timeoutMsOf,
  unavailable,
  within,
} from './target.js';

export interface NatsTargetOptions {
  /** Default: the topic. */
  readonly subject?: PerMessage<string>;
  /** How long an acknowledgement may take. Default: 10s. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('subject');

const CLOUD_EVENTS_PREFIX = 'ce-';

export function nats(client: Pick<JetStreamClient, 'publish'>, options: NatsTargetOptions = {}): RelayTarget {
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const send = async (message: RelayMessage, signal: AbortSignal): Promise<RelayResult> => {
    const { subject = message.topic } = options;
    const settings = { msgID: message.messageID, headers: headersOf(message), timeout: timeoutMs };
    try {
      await within(client.publish(settingOf(subject, message), bufferOf(message), settings), timeoutMs, signal);
      return OK;
    } catch (error) {
      return failed(error);
    }
  };
  return {
    name: 'NATS',
    cloudEventsPrefix: CLOUD_EVENTS_PREFIX,
    publish: (messages, signal) => Promise.all(messages.map((message) => send(message, signal))),
  };
}

/** What the server has decided about this message. Everything else is a failure to reach it. */
function failed(error: unknown): RelayResult {
  const { name, message = '' } = error as Partial<Error>;
  switch (name) {
    case 'InvalidSubjectError':
    case 'PermissionViolationError':
      return { kind: 'reject', error };
    // The client says that if no stream has the subject, or none is ready yet.
    case 'JetStreamNotEnabled':
    case 'JetStreamApiError':
    case 'StreamNotFoundError':
      return { kind: 'retry', error };
    default:
      return /max.?payload/i.test(message) ? { kind: 'reject', error } : unavailable(error);
  }
}

function headersOf({ headers, topic, key }: RelayMessage): MsgHdrs {
  const all = natsHeaders();
  for (const [name, value] of Object.entries(headers)) all.set(name, value.replaceAll(/[\r\n]+/g, ' '));
  all.set('everstep-topic', topic);
  if (key !== undefined) all.set('everstep-key', key);
  return all;
}
