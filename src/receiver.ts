// `everstep/receiver`: the kit for writing receivers for other brokers.
export type {
  Adapter,
  ConnectContext,
  ConsumerOptions,
  DeadLetterPolicy,
  Position,
  Source,
} from './receiver/adapter.js';
export type { DeadLetter } from './receiver/dead-letters.js';
export type {
  ReceivedChangeFilter,
  ReceivedChangeOptions,
  ReceivedDeadLetters,
  ReceivedFilter,
  ReceivedGroup,
  ReceivedRequeueOptions,
} from './receiver/dead-letter-verbs.js';
export { Mailbox } from './receiver/mailbox.js';
export { type ConsumerDecorator, Receiver, type ReceiverSettings } from './receiver/receiver.js';
