// What the parent asks of a worker process of the outbox, and what the worker answers.

export type OutboxCommand =
  PublishCommand | BulkCommand | DrainCommand | CostCommand | LatencyCommand | FetchCommand | RelayCommand;

interface OnDatabase {
  readonly url: string;
}

/** How long a transaction takes: with the user's insert only, with another plain insert, and with a message. */
export interface PublishCommand extends OnDatabase {
  readonly task: 'publish';
  readonly rounds: number;
}

export interface PublishAnswer {
  readonly alone: number;
  readonly plain: number;
  readonly published: number;
}

/** Publishes in transactions of many messages. */
export interface BulkCommand extends OnDatabase {
  readonly task: 'bulk';
  readonly messages: number;
  readonly perTransaction: number;
}

/** How messages are consumed. `handoff` makes workflows of them, `leased` calls a handler that does nothing. */
export type Consumption = 'handoff' | 'leased';

/** Works off a backlog. */
export interface DrainCommand extends OnDatabase {
  readonly task: 'drain';
  readonly by: Consumption;
  readonly messages: number;
}

/** Publishes messages one by one and works them off: what the server writes and runs for that. */
export interface CostCommand extends OnDatabase {
  readonly task: 'cost';
  readonly by: Consumption;
  readonly messages: number;
}

export interface CostAnswer {
  readonly publishing: Cost;
  readonly consuming: Cost;
}

export interface Cost {
  readonly walBytes: number;
  readonly statements: number;
}

/** From the call that publishes to the first line of the handler, on an idle topic. */
export interface LatencyCommand extends OnDatabase {
  readonly task: 'latency';
  readonly samples: number;
}

export interface LatencyAnswer {
  readonly median: number;
  readonly p95: number;
}

/** How long a fetch of 100 messages takes. */
export interface FetchCommand extends OnDatabase {
  readonly task: 'fetch';
  readonly pending: number;
  readonly rounds: number;
}

export type RelayBroker = 'rabbitmq' | 'nats' | 'redis';

export interface RelayCommand extends OnDatabase {
  readonly task: 'relay';
  readonly broker: RelayBroker;
  readonly port: number;
  readonly messages: number;
}

export interface ElapsedAnswer {
  readonly elapsedMs: number;
}
