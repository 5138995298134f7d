// What the items of a commit tell other processes. Streams are told of apart: whoever reads one is served better by
// many values now and then than by a few at every commit.
import { eventKey } from '../messaging/events.js';
import { messageKey } from '../messaging/messages.js';
import { CHANNELS, type Hint } from './wakeups.js';
import type { Item } from '../writer/write-group.js';

/** The hints of a commit, each once. */
export function hintsOf(items: readonly Item[]): Hint[] {
  const hints = new Map<string, Hint>();
  for (const item of items) {
    const hint = hintOf(item);
    if (hint) hints.set(`${hint.channel} ${hint.payload}`, hint);
  }
  return [...hints.values()];
}

function hintOf(item: Item): Hint | undefined {
  switch (item.kind) {
    case 'send': {
      if (!item.send.isTold) return undefined;
      const { destinationID, topic } = item.send.sending.message;
      return { channel: CHANNELS.notifications, payload: messageKey({ workflowID: destinationID, topic }) };
    }
    case 'event':
      return { channel: CHANNELS.events, payload: eventKey(item.set.event) };
    default:
      return undefined;
  }
}
