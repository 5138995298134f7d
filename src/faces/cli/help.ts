// Help texts, generated from the command table.
import { type Command, GROUPS, HELP, type Parameter } from './command.js';
import { longName, type Option } from './option.js';
import { sanitize, paint, type RenderContext } from './render-context.js';
import { formatFields, textWidth, wrap } from './table.js';
import { wrongUsage } from './failure.js';

/** Help for the whole CLI, a group or a single command. */
export function formatHelp(rendering: RenderContext, commands: readonly Command[], of: string): string {
  const found = commands.find(({ name }) => name === of);
  if (found) return commandHelp(rendering, found);
  if (of === '') return overview(rendering, commands);
  const members = commands.filter(({ name }) => name.startsWith(`${of} `));
  if (members.length === 0) throw wrongUsage(`Unknown command "${sanitize(of)}". See: everstep --help`);
  const { about = '', aliases = [] } = GROUPS[of] ?? {};
  return joined([
    `${about}.`,
    section(rendering, 'Commands', fields(rendering, members)),
    aliases.length > 0 && `Aliases: ${aliases.join(', ')}`,
    `Options and examples: everstep ${of} COMMAND --help`,
  ]);
}

function overview(rendering: RenderContext, commands: readonly Command[]): string {
  const own = commands.filter(({ name }) => !name.includes(' '));
  const groups = Object.entries(GROUPS).map(([name, { about }]) => {
    const verbs = commands
      .filter((one) => one.name.startsWith(`${name} `))
      .map((one) => one.name.slice(name.length + 1));
    return section(rendering, `everstep ${name} …  ${about}`, indented(rendering, verbs.join(', ')));
  });
  return joined([
    'Everstep: manage durable workflows and their system database.',
    section(rendering, 'Usage', '  everstep COMMAND [OPTIONS]'),
    section(rendering, 'Commands', fields(rendering, own)),
    ...groups,
    wrap(
      'The system database comes from --sys-db-url, DBOS_SYSTEM_DATABASE_URL or dbos-config.yaml, in this order.',
      helpWidth(rendering),
    ),
    'Exit codes: 0 success, 1 failure, 2 usage error, 3 not found.',
    'Help for a command: everstep COMMAND --help',
  ]);
}

function commandHelp(rendering: RenderContext, command: Command): string {
  const { about, details, parameter, examples } = command;
  const options = Object.entries({ ...command.options, help: HELP });
  const lines = options.map(([key, option]) => [`  ${optionText(key, option)}`, optionAbout(option)] as const);
  const argument = parameter && ([[`  ${parameter.name}`, parameter.about]] as const);
  return joined([
    `${about}.`,
    details && wrap(details, helpWidth(rendering)),
    section(rendering, 'Usage', `  ${usageOf(command)}`),
    argument && section(rendering, 'Argument', list(rendering, argument)),
    section(rendering, 'Options', list(rendering, lines)),
    section(
      rendering,
      'Examples',
      examples.map(([line, what]) => `  ${paint(rendering, 'grey', `# ${what}`)}\n  ${line}`).join('\n'),
    ),
  ]);
}

export function usageOf({ name, parameter, options }: Command): string {
  const required = Object.entries(options)
    .filter(([, { isRequired }]) => isRequired)
    .map(([key, { placeholder }]) => ` --${longName(key)} ${placeholder}`);
  return `everstep ${name}${parameter ? ` ${parameterText(parameter)}` : ''}${required.join('')} [OPTIONS]`;
}

function parameterText({ name, takes }: Parameter): string {
  const texts = { one: name, optional: `[${name}]`, some: `${name}…`, any: `[${name}…]` };
  return texts[takes];
}

/** The option's usage: `-l, --limit N`. */
export function optionText(key: string, { short, aliases, placeholder }: Option<unknown>): string {
  const names = [
    ...(short === undefined ? [] : [`-${short}`]),
    ...[longName(key), ...aliases].map((name) => `--${name}`),
  ];
  return `${names.join(', ')}${placeholder === null ? '' : ` ${placeholder}`}`;
}

/** The option's description with its remarks: required, repeatable, default. */
export function optionAbout({ about, isRequired, isRepeatable, fallback }: Option<unknown>): string {
  const remarks = [
    isRequired && 'required',
    isRepeatable && 'repeatable',
    fallback !== undefined && `default: ${fallback}`,
  ].filter((remark) => remark !== false);
  return remarks.length === 0 ? about : `${about} (${remarks.join('; ')})`;
}

function fields(rendering: RenderContext, commands: readonly Command[]): string {
  return list(
    rendering,
    commands.map(({ name, about }) => [`  ${name}`, about] as const),
  );
}

const WIDTH_MAX = 110;
const ABOUT_MIN = 30;

function helpWidth({ width }: RenderContext): number {
  return Math.min(width, WIDTH_MAX);
}

/** Names with their descriptions, wrapped to the help width. */
function list(rendering: RenderContext, entries: readonly (readonly [name: string, about: string])[]): string {
  const nameWidth = Math.max(...entries.map(([name]) => textWidth(name)));
  const width = Math.max(ABOUT_MIN, helpWidth(rendering) - nameWidth - 2);
  return formatFields(
    rendering,
    entries.map(([name, about]) => [name, wrap(about, width)] as const),
  );
}

function indented(rendering: RenderContext, text: string): string {
  return wrap(text, helpWidth(rendering) - 2).replace(/^/gm, '  ');
}

function section(rendering: RenderContext, title: string, body: string): string {
  return `${paint(rendering, 'bold', title)}\n${body}`;
}

function joined(parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== false && part !== '').join('\n\n');
}
