// One call of the command line from its words to its exit code.
import { LIBRARY_VERSION } from '../base/version.js';
import { withoutPasswords } from '../base/url.js';
import { DBOSError } from '../model/errors/errors.js';
import type { Command, Output, Scene } from './command.js';
import { CommandFailure, EXIT } from './failure.js';
import { formatHelp } from './help.js';
import { harmless, paint, type Paper, toJSONText } from './paper.js';
import { type Parsed, parseCommandLine } from './parse.js';

const INDENT = 2;

/** Runs the command that the words name, and gives the exit code. Never throws. */
export async function run(commands: readonly Command[], words: readonly string[], scene: Scene): Promise<number> {
  try {
    const parsed = parseCommandLine(commands, words, scene.clock.now());
    return await follow(commands, parsed, scene);
  } catch (error) {
    return report(scene, error);
  }
}

async function follow(commands: readonly Command[], parsed: Parsed, scene: Scene): Promise<number> {
  const paper = paperOf(scene);
  switch (parsed.kind) {
    case 'version':
      await scene.terminal.print(`${LIBRARY_VERSION}\n`);
      return EXIT.ok;
    case 'help':
      await scene.terminal.print(`${formatHelp(paper, commands, parsed.of)}\n`);
      return EXIT.ok;
    case 'run': {
      const output = await parsed.command.run(scene, parsed);
      return output ? await print(scene, output, parsed.options['json'] === true) : EXIT.ok;
    }
  }
}

async function print(scene: Scene, output: Output, isJSON: boolean): Promise<number> {
  const text = isJSON ? toJSONText(output.json, INDENT) : output.text(paperOf(scene));
  if (text !== '') await scene.terminal.print(text.endsWith('\n') ? text : `${text}\n`);
  return output.exitCode ?? EXIT.ok;
}

function paperOf({ terminal, clock }: Scene): Paper {
  return { width: terminal.width, hasColours: terminal.hasColours, now: clock.now() };
}

function report({ terminal, signal, environment }: Scene, error: unknown): number {
  // Whoever reads the answer has had enough of it, as `head` does.
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'EPIPE') return EXIT.ok;
  const mark = paint({ hasColours: terminal.isOverwritable && terminal.hasColours }, 'red', 'Error:');
  if (signal.aborted) {
    terminal.tell('Interrupted.\n');
    return EXIT.interrupted;
  }
  terminal.tell(`${mark} ${messageOf(error)}\n`);
  if (environment['EVERSTEP_DEBUG'] && error instanceof Error) {
    terminal.tell(`${withoutPasswords(error.stack ?? '')}\n`);
  }
  return exitCodeOf(error);
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const text = withoutPasswords(message).split('\n').map(harmless).join('\n');
  if (error instanceof CommandFailure || error instanceof DBOSError) return text;
  return `${text} (unexpected; set EVERSTEP_DEBUG=1 to see where it comes from)`;
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommandFailure) return error.exitCode;
  return error instanceof DBOSError && error.code === 'NON_EXISTENT_WORKFLOW' ? EXIT.notFound : EXIT.failed;
}
