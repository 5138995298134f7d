// Parses command-line arguments into a command and its option values.
import { parseArgs } from 'node:util';
import { type Command, GROUPS, HELP, type Parameter } from './command.js';
import { nearest } from '../../kernel/check/validation.js';
import { wrongUsage } from './failure.js';
import { longName, type Option, type Options, type Values } from './option.js';

export type Parsed =
  | { readonly kind: 'run'; readonly command: Command; readonly options: Values<Options>; readonly args: string[] }
  /** `of` names a command or a group; empty for the overview. */
  | { readonly kind: 'help'; readonly of: string }
  | { readonly kind: 'version' };

export function parseCommandLine(commands: readonly Command[], words: readonly string[], now: number): Parsed {
  const [first, ...others] = words;
  if (first === undefined) return { kind: 'help', of: '' };
  if (first === '--version' || first === '-V') return { kind: 'version' };
  if (first === 'help' || first === '--help' || first === '-h') {
    return { kind: 'help', of: nameOf(others.filter((word) => !word.startsWith('-'))) };
  }
  if (first.startsWith('-')) {
    throw wrongUsage(`Write the command before its options, as in: everstep workflow list ${first} …`);
  }
  const found = findCommand(commands, words);
  if (!found) return unknownCommand(commands, words);
  return parseOptions(found.command, words.slice(found.length), now);
}

function findCommand(
  commands: readonly Command[],
  words: readonly string[],
): { readonly command: Command; readonly length: number } | undefined {
  for (const length of [3, 2, 1]) {
    const name = nameOf(words.slice(0, length));
    const found = words.length >= length && commands.find((one) => one.name === name);
    if (found) return { command: found, length };
  }
  return undefined;
}

/** The command name without aliases: `wf list` is `workflow list`. */
function nameOf(words: readonly string[]): string {
  return words
    .map((word) => Object.entries(GROUPS).find(([, { aliases }]) => aliases.includes(word))?.[0] ?? word)
    .join(' ');
}

function unknownCommand(commands: readonly Command[], words: readonly string[]): Parsed {
  const typed = words.slice(0, Math.max(1, words.findIndex((word) => word.startsWith('-')) >>> 0));
  const group = nameOf(typed.slice(0, 1));
  const isGroup = Object.hasOwn(GROUPS, group);
  if (isGroup && typed.length === 1) return { kind: 'help', of: group };
  const written = nameOf(typed.slice(0, isGroup ? 2 : 1));
  const near = nearest(
    written,
    commands.map(({ name }) => name),
  );
  throw wrongUsage(
    `Unknown command "${written}".${near === undefined ? '' : ` Did you mean "${near}"?`} ` +
      `See: everstep ${isGroup ? `${group} ` : ''}--help`,
  );
}

function parseOptions(command: Command, words: readonly string[], now: number): Parsed {
  const names = optionNames({ ...command.options, help: HELP });
  // Not strict: strict mode's messages do not say what to do.
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      [...names].map(([name, { key, option }]) => [
        name,
        {
          type: option.placeholder === null ? 'boolean' : 'string',
          ...(option.short !== undefined && name === longName(key) && { short: option.short }),
        } as const,
      ]),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const args: string[] = [];
  const texts = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind === 'positional') args.push(token.value);
    if (token.kind !== 'option') continue;
    const known = names.get(token.name);
    if (!known) throw unknownOption(command, token.rawName, [...names.keys()]);
    const { key, option } = known;
    const isWritten = token.value !== undefined && (token.inlineValue || !/^-./.test(token.value));
    if (option.placeholder === null && token.value !== undefined) {
      throw wrongUsage(`${token.rawName} takes no value.`);
    }
    if (option.placeholder !== null && !isWritten) {
      throw wrongUsage(`${token.rawName} needs a value: ${token.rawName} ${option.placeholder}`);
    }
    texts.set(key, [...(texts.get(key) ?? []), token.value ?? '']);
  }
  if (texts.has('help')) return { kind: 'help', of: command.name };
  const options = Object.entries(command.options).map(([key, option]) => {
    const written = texts.get(key) ?? [];
    if (written.length > 1 && !option.isRepeatable) throw wrongUsage(`Pass --${longName(key)} only once.`);
    return [key, option.read(written, { label: `--${longName(key)}`, now })] as const;
  });
  checkArguments(command, args);
  return { kind: 'run', command, options: Object.fromEntries(options), args };
}

interface NamedOption {
  readonly key: string;
  readonly option: Option<unknown>;
}

/** The options by long name, aliases included. */
function optionNames(options: Options): Map<string, NamedOption> {
  return new Map(
    Object.entries(options).flatMap(([key, option]) =>
      [longName(key), ...option.aliases].map((name) => [name, { key, option }] as const),
    ),
  );
}

function unknownOption(command: Command, written: string, known: readonly string[]): Error {
  const near = nearest(
    written,
    known.map((name) => `--${name}`),
  );
  const advice = near === undefined ? '' : ` Did you mean ${near}?`;
  return wrongUsage(`Unknown option ${written}.${advice} See: everstep ${command.name} --help`);
}

function checkArguments({ name, parameter }: Command, args: readonly string[]): void {
  const extra = args[parameter === undefined ? 0 : 1];
  if (extra !== undefined && (parameter === undefined || isSingle(parameter))) {
    throw wrongUsage(`Unexpected argument "${extra}". See: everstep ${name} --help`);
  }
  const isMissing = args.length === 0 && (parameter?.takes === 'one' || parameter?.takes === 'some');
  if (isMissing) throw wrongUsage(`${parameter.name} is missing: everstep ${name} ${parameter.name}`);
  if (args.some((arg) => arg.trim() === '')) throw wrongUsage(`${parameter?.name} must not be empty.`);
}

function isSingle({ takes }: Parameter): boolean {
  return takes === 'one' || takes === 'optional';
}
