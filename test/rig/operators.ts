// An operator without an engine or a client, for tests of the control room.
import { systemClock } from '../../src/base/clock.js';
import { silentLogger } from '../../src/base/log.js';
import { Codec } from '../../src/codec/codec.js';
import type { Operator } from '../../src/control/operator.js';
import type { Database } from '../../src/store/database.js';

/** Tells nobody of what it does, and cannot wait for anything. */
export function operatorOn(database: Database, fields: Partial<Operator> = {}): Operator {
  return {
    database,
    codec: new Codec(),
    clock: systemClock,
    logger: silentLogger,
    applicationName: 'test',
    get watches(): never {
      throw new Error('This operator cannot wait.');
    },
    news: {
      queued: () => {},
      delayed: () => {},
      changed: async () => {},
      queuesChanged: async () => {},
      schedulesChanged: async () => {},
    },
    retrying: (operation) => operation(),
    ...fields,
  };
}
