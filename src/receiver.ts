// `everstep/receiver`: the kit for writing receivers for other brokers.
export type {
  Adapter,
  ConnectContext,
  ConsumerOptions,
  DeadLetterPolicy,
  Position,
  Source,
} from './plugins/receiver/adapter.js';
export type { DeadLetter } from './plugins/receiver/dead-letters.js';
export type {
  ReceivedChangeFilter,
  ReceivedChangeOptions,
  ReceivedDeadLetters,
  ReceivedFilter,
  ReceivedGroup,
  ReceivedRequeueOptions,
} from './plugins/receiver/dead-letter-verbs.js';
export { Mailbox } from './plugins/receiver/mailbox.js';
export { type ConsumerDecorator, Receiver, type ReceiverSettings } from './plugins/receiver/receiver.js';
