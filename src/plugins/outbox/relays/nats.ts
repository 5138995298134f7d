// Publishes to NATS JetStream: a message has arrived when its stream acknowledges it. The stream drops a repeated message
// ID within its duplicate window.
import type { Duration } from '../../../kernel/base/duration.js';
import { jetstream, type JetStreamClient, type JetStreamPublishOptions } from '@nats-io/jetstream';
import { headers as natsHeaders, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import { OutboxRelayError } from '../../../kernel/errors/errors.js';
import { shown } from '../../../kernel/check/validation.js';
import { Connection } from './connection.js';
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
  uncarriable,
  unavailable,
  within,
} from './target.js';

export interface NatsTargetOptions {
  /** Default: the topic. */
  readonly subject?: PerMessage<string>;
  /** How long connecting, or an acknowledgement, may take. Default: 10s. */
  readonly timeout?: Duration;
}

const OPTIONS = targetOptions('subject');

const CLOUD_EVENTS_PREFIX = 'ce-';

type Publishing = Pick<JetStreamClient, 'publish'>;

/** A JetStream client, or how to connect: then it connects again after the connection was closed. */
export type NatsSource = Publishing | (() => Promise<NatsConnection>);

interface Built {
  readonly subject: string;
  readonly payload: Buffer;
  readonly settings: Partial<JetStreamPublishOptions>;
}

export function nats(source: NatsSource, options: NatsTargetOptions = {}): RelayTarget<unknown> {
  const timeoutMs = timeoutMsOf(options, OPTIONS);
  const connections = new Connection<Publishing | NatsConnection, Publishing>(source, {
    timeoutMs,
    begin(given, lose) {
      if (!('closed' in given)) return given;
      void given.closed().then(lose);
      return jetstream(given);
    },
    end: async (given) => 'closed' in given && given.close(),
  });
  const send = async (client: Publishing, { subject, payload, settings }: Built, signal: AbortSignal) => {
    try {
      await within(client.publish(subject, payload, settings), timeoutMs, signal);
      return OK;
    } catch (error) {
      return failed(error, subject);
    }
  };
  const target: RelayTarget<Built> = {
    name: 'NATS',
    cloudEventsPrefix: CLOUD_EVENTS_PREFIX,
    build(message) {
      const { subject = message.topic } = options;
      const settings = { msgID: message.messageID, headers: headersOf(message), timeout: timeoutMs };
      return { subject: settingOf('subject', subject, message), payload: bufferOf(message), settings };
    },
    publish: (messages, signal) =>
      connections.use(signal, (client) => Promise.all(messages.map((message) => send(client, message, signal)))),
    close: () => connections.close(),
  };
  return target;
}

/** What the server has decided about this message. Everything else is a failure to reach it. */
function failed(error: unknown, subject: string): RelayResult {
  const { name, message = '' } = error as Partial<Error>;
  switch (name) {
    case 'InvalidSubjectError':
    case 'PermissionViolationError':
      return { kind: 'reject', error };
    // The client says that if no stream has the subject, or none is ready yet.
    case 'JetStreamNotEnabled':
      return {
        kind: 'retry',
        error: new OutboxRelayError(`No stream took subject ${shown(subject)}.`, { cause: error }),
      };
    case 'JetStreamApiError':
    case 'StreamNotFoundError':
      return { kind: 'retry', error };
    default:
      return /max.?payload/i.test(message) ? { kind: 'reject', error } : unavailable(error);
  }
}

function headersOf({ headers, topic, key }: RelayMessage): MsgHdrs {
  const all = natsHeaders();
  for (const [name, value] of Object.entries(headers)) {
    try {
      all.set(name, value.replaceAll(/[\r\n]+/g, ' '));
    } catch (cause) {
      throw uncarriable('NATS', `${shown(name)} cannot be the name of a header.`, { cause });
    }
  }
  all.set('everstep-topic', topic);
  if (key !== undefined) all.set('everstep-key', key);
  return all;
}
