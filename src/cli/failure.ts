// How a command fails: a sentence for people, and an exit code for programs.

export const EXIT = { ok: 0, failed: 1, usage: 2, notFound: 3, interrupted: 130 } as const;

export class CommandFailure extends Error {
  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}

/** The command was called in a wrong way. */
export function wrongUsage(message: string): CommandFailure {
  return new CommandFailure(message, EXIT.usage);
}

/** What the command is about does not exist. */
export function notFound(message: string): CommandFailure {
  return new CommandFailure(message, EXIT.notFound);
}

/** Why a command ends early. */
export class Interruption extends Error {
  constructor(readonly signal: NodeJS.Signals) {
    super('Interrupted.');
  }
}
