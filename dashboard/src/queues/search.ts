// What the URL of the queues' page holds: the queue whose panel is open.
export interface QueuesSearch {
  readonly queue?: string;
}

export function readQueuesSearch(search: Record<string, unknown>): QueuesSearch {
  return typeof search['queue'] === 'string' ? { queue: search['queue'] } : {};
}
