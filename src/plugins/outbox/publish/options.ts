// The options of a message, checked and turned into a row.
import { type Duration, durationMs } from '../../../kernel/base/duration.js';
import { newID } from '../../../kernel/base/ids.js';
import { validate } from '../../../run/plugin.js';
import { DBOSInvalidArgumentError, InvalidOutboxError } from '../../../kernel/errors/errors.js';
import {
  duration,
  date,
  integer,
  mapOf,
  number,
  oneOf,
  optional,
  record,
  string,
  Check,
  checkThat,
} from '../../../kernel/check/validation.js';
import type { RowColumn, Value } from '../../../kernel/sql/sql.js';
import { NAME_MAX, type Topic } from '../topic.js';
import { CONTENT_TYPE, CORRELATION_ID, encodeBody } from './body.js';

export interface PublishOptions {
  /** How long until it is due. Default: 0. */
  readonly delay?: Duration;
  /** When it is due: a date, or epoch milliseconds. */
  readonly at?: Date | number;
  /** At most one message with this ID is pending in the topic. */
  readonly timerId?: string;
  /** Messages with the same key can be handled in order. Default: that of the topic's `key`. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long it may be handled after it is due. Later it becomes a dead letter. */
  readonly expiresIn?: Duration;
  /** From 0 to 32767; higher ones are handled first. Default: 0. */
  readonly priority?: number;
  readonly correlationID?: string;
  /** The trace context, by https://www.w3.org/TR/trace-context. Default: that of the header `traceparent`. */
  readonly traceparent?: string;
}

/** What to do if a message with the same `timerId` is pending. */
export type Deduplication =
  /** Keep the pending one. */
  | 'ignore'
  /** Replace its body and due time. */
  | 'replace'
  /** Replace it and postpone it, to at most this long after the first was published. */
  | { readonly debounce: Duration }
  /** Keep the pending one, and remember the ID for this long after it was handled. */
  | { readonly once: Duration };

export interface DeduplicationOptions {
  /** Default: `ignore`. */
  readonly dedupe?: Deduplication;
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]*)?$/;
const traceparent = checkThat<string>(
  'a trace context such as 00-<trace ID>-<span ID>-01',
  (value) => typeof value === 'string' && value.length <= NAME_MAX && TRACEPARENT.test(value),
);
const name255 = string({ min: 1, max: NAME_MAX });
const FIELDS = {
  delay: optional(duration),
  at: optional(
    new Check<Date | number>({
      wants: 'a Date or epoch milliseconds',
      find: (value) => (typeof value === 'number' ? number() : date).find(value),
    }),
  ),
  timerId: optional(name255),
  key: optional(name255),
  headers: optional(mapOf(string(), string())),
  expiresIn: optional(duration),
  priority: optional(integer({ max: 32_767 })),
  correlationID: optional(name255),
  traceparent: optional(traceparent),
};
const DEDUPE: Check<Deduplication> = new Check({
  wants: 'ignore, replace, { debounce } or { once }',
  find: (value) =>
    typeof value === 'object'
      ? record({ debounce: optional(duration), once: optional(duration) }).find(value)
      : oneOf(['ignore', 'replace']).find(value),
});
export const PUBLISH_OPTIONS = record({ ...FIELDS, dedupe: optional(DEDUPE) });
export const ROW_OPTIONS = record(FIELDS);
export const RESCHEDULE_OPTIONS = record({ delay: FIELDS.delay, at: FIELDS.at });
export const BATCH_OPTIONS = record({ dedupe: optional(DEDUPE) });

export const MESSAGE_COLUMNS = [
  { name: 'queue', type: 'text' },
  { name: 'body', type: 'text' },
  { name: 'body_hex', type: 'text' },
  { name: 'headers', type: 'json' },
  { name: 'delay_ms', type: 'float' },
  { name: 'due_at', type: 'float' },
  { name: 'timer_id', type: 'text' },
  { name: 'message_id', type: 'text' },
  { name: 'ordering_key', type: 'text' },
  { name: 'priority', type: 'int' },
  { name: 'expires_in_ms', type: 'float' },
  { name: 'traceparent', type: 'text' },
] as const satisfies readonly RowColumn[];

/** A message that is ready to be inserted. */
export interface NewMessage {
  readonly queue: string;
  readonly timerID: string | null;
  readonly messageID: string;
  readonly values: readonly Value[];
}

/** Checks the body against the topic's schema, and encodes it. */
export async function newMessage<T>(topic: Topic<T>, body: T, options: PublishOptions): Promise<NewMessage> {
  const { schema } = topic.options;
  const valid = schema ? ((await validate(schema, body, `The body for "${topic.name}" is`)) as T) : body;
  const { delay, at, timerId = null, expiresIn, priority = 0 } = options;
  if (delay !== undefined && at !== undefined) {
    throw new DBOSInvalidArgumentError('Pass delay or at, and not both.', 'options.at');
  }
  const key = options.key ?? topic.options.key?.(valid);
  if (key !== undefined) name255.read(key, 'key');
  const { text, hex, contentType } = encodeBody(valid);
  const messageID = newID();
  const values: Value[] = [
    topic.name,
    text,
    hex,
    JSON.stringify(headersOf(options, contentType)),
    delay === undefined ? 0 : Math.ceil(durationMs(delay)),
    at === undefined ? null : Number(at),
    timerId,
    messageID,
    key ?? null,
    priority,
    expiresIn === undefined ? null : Math.ceil(durationMs(expiresIn)),
    options.traceparent ?? traceparentIn(options.headers) ?? null,
  ];
  return { queue: topic.name, timerID: timerId, messageID, values };
}

/** One of the wrong form is ignored, as the specification wants it: it may come from elsewhere. */
function traceparentIn({ traceparent: found }: PublishOptions['headers'] = {}): string | undefined {
  return traceparent.accepts(found) ? found : undefined;
}

/** The envelope owns two headers. */
function headersOf({ headers = {}, correlationID }: PublishOptions, contentType: string | undefined): object {
  const own: Record<string, string> = {
    ...(contentType !== undefined && { [CONTENT_TYPE]: contentType }),
    [CORRELATION_ID]: correlationID ?? headers[CORRELATION_ID] ?? newID(),
  };
  const isBytes = contentType === undefined;
  for (const [name, value] of Object.entries(own)) {
    const given = headers[name];
    if (given === undefined || given === value) continue;
    throw new InvalidOutboxError(`The header "${name}" is "${given}", but the message has "${value}". Leave it out.`);
  }
  if (isBytes && headers[CONTENT_TYPE] !== undefined) own[CONTENT_TYPE] = headers[CONTENT_TYPE];
  return { ...headers, ...own };
}
