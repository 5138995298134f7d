// `everstep/receiver`: the kit with which receivers for further brokers are written.
export type {
  Adapter,
  ConnectContext,
  ConsumerOptions,
  DeadLetterPolicy,
  Position,
  Source,
} from './receiver/adapter.js';
export type { DeadLetter } from './receiver/dead-letters.js';
export { Mailbox } from './receiver/mailbox.js';
export { type ConsumerDecorator, Receiver, type ReceiverSettings } from './receiver/receiver.js';
