// How a message is wrapped for others: as it is, or as a CloudEvent in JSON or in headers.
import { func, oneOf, optional, record, string } from '../../../kernel/check/validation.js';
import { bufferOf, type RelayMessage } from './target.js';

export interface CloudEvents {
  /** Who publishes: a URI reference, such as `/orders`. */
  readonly source: string;
  /** The type of the event. Default: the topic. */
  readonly type?: (message: RelayMessage) => string;
  /** `binary`: the attributes are headers, and the payload stays as it was published. Default: `structured`, in JSON. */
  readonly mode?: 'structured' | 'binary';
}

/** `raw`: payload and headers as they were published. */
export type Envelope = 'raw' | { readonly cloudEvents: CloudEvents };

export const CLOUD_EVENTS = record({
  cloudEvents: record({
    source: string({ min: 1 }),
    type: optional(func),
    mode: optional(oneOf(['structured', 'binary'])),
  }),
});

const CLOUD_EVENTS_TYPE = 'application/cloudevents+json';
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;
/** Of a Date. */
const TIME_MAX = 8.64e15;
const TEXT_TYPE = /^text\//i;

/** `prefix`: what the headers of binary mode begin with. */
export function wrapped(message: RelayMessage, envelope: Envelope, prefix = ''): RelayMessage {
  if (envelope === 'raw') return message;
  const attributes = attributesOf(message, envelope.cloudEvents);
  return envelope.cloudEvents.mode === 'binary' ? inHeaders(message, attributes, prefix) : inJSON(message, attributes);
}

function attributesOf(message: RelayMessage, { source, type }: CloudEvents): Record<string, string> {
  const { messageID, topic, key, contentType, createdAt, traceparent } = message;
  return {
    specversion: '1.0',
    id: messageID,
    source,
    type: type?.(message) ?? topic,
    // Another program may have stored a time that is none here.
    ...(Math.abs(createdAt) <= TIME_MAX && { time: new Date(createdAt).toISOString() }),
    ...(key !== undefined && { subject: key }),
    ...(contentType !== undefined && { datacontenttype: contentType }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** The content type is that of the message, and so no attribute. */
function inHeaders(message: RelayMessage, attributes: Record<string, string>, prefix: string): RelayMessage {
  const others = Object.entries(attributes).filter(([name]) => name !== 'datacontenttype');
  const added = Object.fromEntries(others.map(([name, value]) => [`${prefix}${name}`, value]));
  return { ...message, headers: { ...message.headers, ...added } };
}

function inJSON(message: RelayMessage, attributes: Record<string, string>): RelayMessage {
  // The data goes in as it was written, so that numbers and order of keys stay.
  const text = `${JSON.stringify(attributes).slice(0, -1)},${dataOf(message)}}`;
  return {
    ...message,
    payload: Buffer.from(text),
    contentType: CLOUD_EVENTS_TYPE,
    headers: { ...message.headers, 'content-type': CLOUD_EVENTS_TYPE },
  };
}

function dataOf(message: RelayMessage): string {
  const { contentType = '' } = message;
  const bytes = bufferOf(message);
  if (JSON_TYPE.test(contentType)) {
    const text = bytes.toString('utf8');
    if (isJSON(text)) return `"data":${text}`;
  }
  if (TEXT_TYPE.test(contentType)) return `"data":${JSON.stringify(bytes.toString('utf8'))}`;
  return `"data_base64":"${bytes.toString('base64')}"`;
}

/** Anything else could bring attributes of its own: `1,"type":"paid"`. */
function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
