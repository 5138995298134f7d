// Sleeps as they are recorded. The output of a sleep is the time at which it ends. The time limit of a wait is recorded as a
// sleep under the number after that of the wait, and as ended when it begins.

interface RecordedSleep {
  readonly name: string;
  readonly endedAt: number | null;
  /** The stored output of a sleep. */
  readonly due: string | null;
}

/** Whether it is the time limit of another operation. */
export function isTimeLimit({ name, endedAt, due }: RecordedSleep): boolean {
  const dueAt = dueOf(due);
  return name === 'DBOS.sleep' && dueAt !== null && endedAt !== null && endedAt < dueAt;
}

/** A number, or superjson's form of one. */
export function dueOf(text: string | null): number | null {
  const digits = /^(?:\{"json":)?(\d{1,16})(?:\.\d+)?\b/.exec(text ?? '')?.[1];
  return digits === undefined ? null : Number(digits);
}
