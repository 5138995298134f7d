// The history of a workflow as text for other programs.
import type { HistoryEvent } from './history.js';

/** The events as lines of JSON. */
export async function* exportEvents(events: AsyncIterable<HistoryEvent>): AsyncGenerator<string, void, undefined> {
  for await (const event of events) yield `${toJSON(event)}\n`;
}

/** Errors have no members that JSON shows, and big integers have no form in it. */
export function toJSON(value: unknown): string {
  const seen = (_key: string, part: unknown): unknown => {
    if (part instanceof Error) return { name: part.name, message: part.message };
    return typeof part === 'bigint' ? part.toString() : part;
  };
  try {
    return JSON.stringify(value, seen) ?? 'null';
  } catch {
    // A payload with a cycle.
    return JSON.stringify(String(value));
  }
}
