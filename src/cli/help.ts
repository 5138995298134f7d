// Help texts, made of the table of commands.
import { type Command, GROUPS, HELP, type Parameter } from './command.js';
import { longName, type Option } from './option.js';
import { harmless, paint, type Paper } from './paper.js';
import { formatFields, textWidth, wrap } from './table.js';
import { wrongUsage } from './failure.js';

/** The help of everything, of a group or of a command. */
export function formatHelp(paper: Paper, commands: readonly Command[], of: string): string {
  const found = commands.find(({ name }) => name === of);
  if (found) return commandHelp(paper, found);
  if (of === '') return overview(paper, commands);
  const members = commands.filter(({ name }) => name.startsWith(`${of} `));
  if (members.length === 0) throw wrongUsage(`Unknown command "${harmless(of)}". See: everstep --help`);
  const { about = '', aliases = [] } = GROUPS[of] ?? {};
  return joined([
    `${about}.`,
    section(paper, 'Commands', fields(paper, members)),
    aliases.length > 0 && `"${of}" may also be written ${aliases.map((alias) => `"${alias}"`).join(' or ')}.`,
    `Options and examples of one: everstep ${of} COMMAND --help`,
  ]);
}

function overview(paper: Paper, commands: readonly Command[]): string {
  const own = commands.filter(({ name }) => !name.includes(' '));
  const groups = Object.entries(GROUPS).map(([name, { about }]) => {
    const verbs = commands
      .filter((one) => one.name.startsWith(`${name} `))
      .map((one) => one.name.slice(name.length + 1));
    return section(paper, `everstep ${name} …  ${about}`, indented(paper, verbs.join(', ')));
  });
  return joined([
    'Everstep: look after durable workflows and their database.',
    section(paper, 'Usage', '  everstep COMMAND [OPTIONS]'),
    section(paper, 'Commands', fields(paper, own)),
    ...groups,
    wrap(
      'The database is given by --sys-db-url, by DBOS_SYSTEM_DATABASE_URL or by dbos-config.yaml, in this order.',
      helpWidth(paper),
    ),
    'Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found.',
    'More of a command: everstep COMMAND --help',
  ]);
}

function commandHelp(paper: Paper, command: Command): string {
  const { about, details, parameter, examples } = command;
  const options = Object.entries({ ...command.options, help: HELP });
  const lines = options.map(([key, option]) => [`  ${optionText(key, option)}`, optionAbout(option)] as const);
  const argument = parameter && ([[`  ${parameter.name}`, parameter.about]] as const);
  return joined([
    `${about}.`,
    details && wrap(details, helpWidth(paper)),
    section(paper, 'Usage', `  ${usageOf(command)}`),
    argument && section(paper, 'Argument', list(paper, argument)),
    section(paper, 'Options', list(paper, lines)),
    section(
      paper,
      'Examples',
      examples.map(([line, what]) => `  ${paint(paper, 'grey', `# ${what}`)}\n  ${line}`).join('\n'),
    ),
  ]);
}

export function usageOf({ name, parameter, options }: Command): string {
  const needed = Object.entries(options)
    .filter(([, { isNeeded }]) => isNeeded)
    .map(([key, { placeholder }]) => ` --${longName(key)} ${placeholder}`);
  return `everstep ${name}${parameter ? ` ${parameterText(parameter)}` : ''}${needed.join('')} [OPTIONS]`;
}

function parameterText({ name, takes }: Parameter): string {
  const texts = { one: name, optional: `[${name}]`, several: `${name}…`, any: `[${name}…]` };
  return texts[takes];
}

/** The option as it is written: `-l, --limit N`. */
export function optionText(key: string, { short, aliases, placeholder }: Option<unknown>): string {
  const names = [
    ...(short === undefined ? [] : [`-${short}`]),
    ...[longName(key), ...aliases].map((name) => `--${name}`),
  ];
  return `${names.join(', ')}${placeholder === null ? '' : ` ${placeholder}`}`;
}

/** What it means, and what else is to be said of it. */
export function optionAbout({ about, isNeeded, isRepeatable, fallback }: Option<unknown>): string {
  const remarks = [
    isNeeded && 'needed',
    isRepeatable && 'may be repeated',
    fallback !== undefined && `default: ${fallback}`,
  ].filter((remark) => remark !== false);
  return remarks.length === 0 ? about : `${about} (${remarks.join('; ')})`;
}

function fields(paper: Paper, commands: readonly Command[]): string {
  return list(
    paper,
    commands.map(({ name, about }) => [`  ${name}`, about] as const),
  );
}

const WIDTH_MAX = 110;
const ABOUT_MIN = 30;

function helpWidth({ width }: Paper): number {
  return Math.min(width, WIDTH_MAX);
}

/** Names, and what is said of each in lines that fit. */
function list(paper: Paper, entries: readonly (readonly [name: string, about: string])[]): string {
  const nameWidth = Math.max(...entries.map(([name]) => textWidth(name)));
  const width = Math.max(ABOUT_MIN, helpWidth(paper) - nameWidth - 2);
  return formatFields(
    paper,
    entries.map(([name, about]) => [name, wrap(about, width)] as const),
  );
}

function indented(paper: Paper, text: string): string {
  return wrap(text, helpWidth(paper) - 2).replace(/^/gm, '  ');
}

function section(paper: Paper, title: string, body: string): string {
  return `${paint(paper, 'bold', title)}\n${body}`;
}

function joined(parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== false && part !== '').join('\n\n');
}
