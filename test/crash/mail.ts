// What must hold of the messages, events and streams of the workflow `mail`, whatever happened in between.
import { expect } from 'vitest';
import { Codec } from '../../src/kernel/codec/codec.js';
import type { Database } from '../../src/database/database.js';
import { listEvents } from '../../src/features/message/events.sql.js';
import { listMessages } from '../../src/features/message/messages.sql.js';
import { isClosingText, listStreamValues } from '../../src/features/message/streams.sql.js';
import type { Tables } from './invariants.js';

const codec = new Codec();

interface Stored {
  readonly text: string;
  readonly serialization: string | null;
}

const read = ({ text, serialization }: Stored): unknown =>
  isClosingText(text) ? 'closed' : codec.decodeValue(text, serialization);

/** Every message was sent and received once, and every value of workflow code is in its stream once. */
export async function expectMail(database: Database, tables: Tables, { isStepOnce = false } = {}): Promise<void> {
  for (const [workflowID, { name, value }] of tables.workflows) {
    if (name !== 'mail') continue;
    const [first] = value as string[];
    const messages = await listMessages(database, workflowID);
    expect(messages.map((one) => [one.topic, read(one), one.isConsumed]).sort()).toEqual([
      ['later', 'of the step', true],
      ['mail', first, true],
    ]);
    const [received] = await listEvents(database, workflowID);
    expect(received && read(received)).toEqual([first, 'of the step']);
    const values = (await listStreamValues(database, workflowID)).map(read);
    const ofTheStep = values.filter((one) => one === 'of the step');
    // A step that was under way is repeated, and writes again.
    if (isStepOnce) expect(ofTheStep).toHaveLength(1);
    expect(values).toEqual([0, 1, 2, 'of the step', ...ofTheStep.slice(1), 3, 'closed']);
  }
}
