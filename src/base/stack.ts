// Where in the code something happens, for messages that have to point there later.

/** The stack of the caller, below a line with the label. */
export function stackHere(label: string): string {
  const holder = new Error(label);
  Error.captureStackTrace(holder, stackHere);
  return holder.stack ?? '';
}
