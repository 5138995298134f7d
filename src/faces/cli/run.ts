// One invocation of the CLI, from arguments to exit code.
import { LIBRARY_VERSION } from '../../kernel/base/version.js';
import { withoutPasswords } from '../../kernel/base/url.js';
import { DBOSError } from '../../kernel/errors/errors.js';
import type { Command, Output, CommandContext } from './command.js';
import { CommandFailure, EXIT } from './failure.js';
import { formatHelp } from './help.js';
import { sanitize, paint, type RenderContext, toJSONText } from './render-context.js';
import { type Parsed, parseCommandLine } from './parse.js';

const INDENT = 2;

/** Runs the command named by the arguments and returns the exit code. Never throws. */
export async function run(
  commands: readonly Command[],
  words: readonly string[],
  context: CommandContext,
): Promise<number> {
  try {
    const parsed = parseCommandLine(commands, words, context.clock.now());
    return await follow(commands, parsed, context);
  } catch (error) {
    return report(context, error);
  }
}

async function follow(commands: readonly Command[], parsed: Parsed, context: CommandContext): Promise<number> {
  const rendering = renderContextOf(context);
  switch (parsed.kind) {
    case 'version':
      await context.terminal.print(`${LIBRARY_VERSION}\n`);
      return EXIT.ok;
    case 'help':
      await context.terminal.print(`${formatHelp(rendering, commands, parsed.of)}\n`);
      return EXIT.ok;
    case 'run': {
      const output = await parsed.command.run(context, parsed);
      return output ? await print(context, output, parsed.options['json'] === true) : EXIT.ok;
    }
  }
}

async function print(context: CommandContext, output: Output, isJSON: boolean): Promise<number> {
  const text = isJSON ? toJSONText(output.json, INDENT) : output.text(renderContextOf(context));
  if (text !== '') await context.terminal.print(text.endsWith('\n') ? text : `${text}\n`);
  return output.exitCode ?? EXIT.ok;
}

function renderContextOf({ terminal, clock }: CommandContext): RenderContext {
  return { width: terminal.width, hasColours: terminal.hasColours, now: clock.now() };
}

function report({ terminal, signal, environment }: CommandContext, error: unknown): number {
  // The reader closed the pipe early, as `head` does.
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'EPIPE') return EXIT.ok;
  const mark = paint({ hasColours: terminal.isOverwritable && terminal.hasColours }, 'red', 'Error:');
  if (signal.aborted) {
    terminal.printStderr('Interrupted.\n');
    return EXIT.interrupted;
  }
  terminal.printStderr(`${mark} ${messageOf(error)}\n`);
  if (environment['EVERSTEP_DEBUG'] && error instanceof Error) {
    terminal.printStderr(`${withoutPasswords(error.stack ?? '')}\n`);
  }
  return exitCodeOf(error);
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const text = withoutPasswords(message).split('\n').map(sanitize).join('\n');
  if (error instanceof CommandFailure || error instanceof DBOSError) return text;
  return `${text} (unexpected; set EVERSTEP_DEBUG=1 to see where it comes from)`;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommandFailure) return error.exitCode;
  return error instanceof DBOSError && error.code === 'NON_EXISTENT_WORKFLOW' ? EXIT.notFound : EXIT.failed;
}
