// How a command fails: a message and an exit code.

export const EXIT = { ok: 0, failed: 1, usage: 2, notFound: 3, interrupted: 130 } as const;

export class CommandFailure extends Error {
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}

/** A usage error. */
export function wrongUsage(message: string): CommandFailure {
  return new CommandFailure(message, EXIT.usage);
}

/** The command's subject does not exist. */
export function notFound(message: string): CommandFailure {
  return new CommandFailure(message, EXIT.notFound);
}

/** The reason with which a signal aborts a command. */
export class Interruption extends Error {
  constructor(readonly signal: NodeJS.Signals) {
    super('Interrupted.');
  }
}
