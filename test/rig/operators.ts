// An operator without an engine or a client, for tests of the control room.
import { systemClock } from '../../src/kernel/base/clock.js';
import { RemoteClock } from '../../src/kernel/base/remote-clock.js';
import { silentLogger } from '../../src/kernel/base/log.js';
import { Codec } from '../../src/kernel/codec/codec.js';
import type { Operator } from '../../src/operator/operator.js';
import type { Database } from '../../src/database/database.js';
import { Bus } from '../../src/database/notify/bus.js';
import type { Topic } from '../../src/database/notify/topics.js';

/** Notifies no process of what it does, and cannot wait for anything. */
export function operatorOn(database: Database, fields: Partial<Operator> = {}): Operator {
  return {
    database,
    codec: new Codec(),
    clock: systemClock,
    databaseClock: new RemoteClock(systemClock),
    logger: silentLogger,
    applicationName: 'test',
    get watchers(): never {
      throw new Error('This operator cannot wait.');
    },
    bus: localBus(),
    retrying: (operation) => operation(),
    ...fields,
  };
}

/** A bus without other processes. */
export function localBus(): Bus {
  const listener = {
    channels: [],
    session: 0,
    isLockHeld: true,
    start: async () => {},
    stop: async () => {},
    subscribe: () => () => {},
    notify: () => {},
    afterCommit: <T>(_: unknown, commit: () => Promise<T>) => commit(),
  };
  return new Bus({ clock: systemClock, logger: silentLogger, listener });
}

/** Fills with what is published on a topic. */
export function published<Payload>(bus: Bus, topic: Topic<Payload>): Payload[] {
  const payloads: Payload[] = [];
  bus.subscribe(topic, (given) => void payloads.push(...given));
  return payloads;
}
