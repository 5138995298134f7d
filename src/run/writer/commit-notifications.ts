// The notifications that follow from the items of a commit. Streams are left out: their readers are served better by
// many values now and then than by a few at every commit.
import { eventKey } from '../../features/message/events.sql.js';
import { messageKey } from '../../features/message/messages.sql.js';
import { notificationOf } from '../../database/notify/bus.js';
import type { Notification } from '../../database/notify/listener.js';
import { topics } from '../../database/notify/topics.js';
import type { Item } from './write-group.js';

/** The notifications of a commit, each once. */
export function notificationsOf(items: readonly Item[]): Notification[] {
  const notifications = new Map<string, Notification>();
  for (const item of items) {
    const notification = notificationFor(item);
    if (notification) notifications.set(`${notification.channel} ${notification.payload}`, notification);
  }
  return [...notifications.values()];
}

function notificationFor(item: Item): Notification | undefined {
  switch (item.kind) {
    case 'send': {
      if (!item.send.isAnnounced) return undefined;
      const { destinationID, topic } = item.send.sending.message;
      return notificationOf(topics.messages, messageKey({ workflowID: destinationID, topic }));
    }
    case 'event':
      return notificationOf(topics.events, eventKey(item.set.event));
    default:
      return undefined;
  }
}
