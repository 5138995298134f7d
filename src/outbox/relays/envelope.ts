// How a message is wrapped for others: as it is, or as a CloudEvent in JSON.
import { func, optional, record, string } from '../../model/validation/validation.js';
import { bufferOf, type RelayMessage } from './target.js';

export interface CloudEvents {
  /** Who publishes: a URI reference, such as `/orders`. */
  readonly source: string;
  /** The type of the event. Default: the topic. */
  readonly type?: (message: RelayMessage) => string;
}

/** `raw`: payload and headers as they were published. */
export type Envelope = 'raw' | { readonly cloudEvents: CloudEvents };

export const CLOUD_EVENTS = record({
  cloudEvents: record({ source: string({ min: 1 }), type: optional(func) }),
});

const CLOUD_EVENTS_TYPE = 'application/cloudevents+json';
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;
const TEXT_TYPE = /^text\//i;

export function wrapped(message: RelayMessage, envelope: Envelope): RelayMessage {
  if (envelope === 'raw') return message;
  const { source, type } = envelope.cloudEvents;
  const { messageID, topic, key, headers, contentType, createdAt, traceparent } = message;
  const attributes = {
    specversion: '1.0',
    id: messageID,
    source,
    type: type?.(message) ?? topic,
    time: new Date(createdAt).toISOString(),
    ...(key !== undefined && { subject: key }),
    ...(contentType !== undefined && { datacontenttype: contentType }),
    ...(traceparent !== undefined && { traceparent }),
  };
  // The data goes in as it was written, so that numbers and order of keys stay.
  const text = `${JSON.stringify(attributes).slice(0, -1)},${dataOf(message)}}`;
  return {
    ...message,
    payload: Buffer.from(text),
    contentType: CLOUD_EVENTS_TYPE,
    headers: { ...headers, 'content-type': CLOUD_EVENTS_TYPE },
  };
}

function dataOf(message: RelayMessage): string {
  const { contentType = '' } = message;
  const bytes = bufferOf(message);
  if (JSON_TYPE.test(contentType)) return `"data":${bytes.toString('utf8')}`;
  if (TEXT_TYPE.test(contentType)) return `"data":${JSON.stringify(bytes.toString('utf8'))}`;
  return `"data_base64":"${bytes.toString('base64')}"`;
}
