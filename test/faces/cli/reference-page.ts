// The CLI's reference page, generated from the command table.
import { type Command, GROUPS, JSON_FLAG } from '../../../src/faces/cli/command.js';
import { FILTERS } from '../../../src/features/listing/workflow-filters.cli.js';
import { DATABASE } from '../../../src/faces/cli/connection.js';
import { optionAbout, optionText, usageOf } from '../../../src/faces/cli/help.js';
import { OUTBOX } from '../../../src/plugins/outbox/connection.cli.js';

const INTRODUCTION = `# Command line

This page is generated from the CLI's command table; \`everstep COMMAND --help\` prints the same. The [tour](../guides/command-line.md) shows the commands in use.

## The database

The system database comes from \`--sys-db-url\`, then \`DBOS_SYSTEM_DATABASE_URL\`, then [dbos-config.yaml](configuration.md#dbos-configyaml) in the current directory, with the same rules as [at launch](configuration.md#which-system-database). On Postgres the schema comes from \`--schema\`, then the file, and defaults to \`dbos\`. Passwords are never printed.

The commands of \`everstep outbox\` work on your own database: that of \`--db-url\`, then \`DBOS_DATABASE_URL\`, then \`database_url\` in the file.

Only \`migrate\`, \`schema\` and \`reset\` change tables; the other commands need tables at the version of this release.

## Values

| Placeholder | What to write |
| --- | --- |
| \`TIME\` | ISO 8601, such as \`2026-01-31T12:00:00Z\`, or a duration before now, such as \`2h\`, or \`now\` |
| \`DURATION\` | \`30s\`, \`15m\`, \`12h\`, \`7d\`, \`2h30m\`; a plain number is in seconds |
| \`JSON\` | JSON; quote it with single quotes in a shell |
| \`ID…\` | one or more; \`-\` reads them from standard input, one a line |

\`--\` ends the options: everything after it is an argument, even if it begins with a dash.

## Output

- **Text**: tables that fit the terminal, in colour unless \`NO_COLOR\` is set. Piped output has no colours and no truncated text.
- **JSON**: \`--json\` prints one JSON document. Numeric times are epoch milliseconds. Later releases may add fields but do not rename them. \`workflow export\` writes JSON lines.
- Prompts, progress and errors go to standard error. \`migrate\`, \`gc\`, \`workflow export\` and \`workflow import\` show a bar with the time left if that is a terminal, and a line every 5 seconds otherwise. \`EVERSTEP_DEBUG=1\` adds stack traces and the library's debug log.
- Ctrl-C stops long work after the current batch. Pressed twice, it exits at once.

| Exit code | Meaning |
| --- | --- |
| 0 | success |
| 1 | failure; for \`doctor\`, \`outbox check\` and \`outbox health\`: there is a problem |
| 2 | usage error |
| 3 | not found |
| 130 | interrupted |
`;

/** Options that many commands share. Each set stands once on the page. */
const SETS: Readonly<Record<string, Command['options']>> = {
  'Database options': { ...DATABASE, ...JSON_FLAG },
  'Outbox options': { ...OUTBOX, ...JSON_FLAG },
  'Workflow filters': FILTERS,
};

export function referencePage(commands: readonly Command[]): string {
  const own = commands.filter(({ name }) => !name.includes(' '));
  const sets = Object.entries(SETS).map(([title, options]) => `## ${title}\n\n${optionLines(options).join('\n')}`);
  const groups = Object.entries(GROUPS).map(([group, { about, aliases }]) => {
    const members = commands.filter(({ name }) => name.startsWith(`${group} `));
    const other = aliases.length === 0 ? '' : ` Aliases: ${aliases.map((alias) => `\`${alias}\``).join(', ')}.`;
    return [`## everstep ${group}\n\n${about}.${other}`, ...members.map(section)].join('\n\n');
  });
  return [INTRODUCTION, ...sets, '## Commands', ...own.map(section), ...groups].join('\n\n');
}

function section(command: Command): string {
  const { name, about, details, parameter, options, examples } = command;
  const sets = Object.entries(SETS).filter(([, set]) => Object.keys(set).every((key) => options[key] === set[key]));
  const shared = new Set(sets.flatMap(([, set]) => Object.keys(set)));
  const own = Object.fromEntries(Object.entries(options).filter(([key]) => !shared.has(key)));
  const links = sets.map(([title]) => `[${title}](#${title.toLowerCase().replaceAll(' ', '-')})`);
  const lines = [...optionLines(own), ...(links.length === 0 ? [] : [`- ${links.join(', ')}`])];
  return [
    `### everstep ${name}`,
    `${about}.${details === undefined ? '' : ` ${details}`}`,
    ...(parameter === undefined
      ? []
      : [`Usage: \`${usageOf(command)}\``, `\`${parameter.name}\`: ${parameter.about}.`]),
    ...(lines.length === 0 ? [] : [lines.join('\n')]),
    ['```sh', ...examples.map(([line, what]) => `${line}   # ${what}`), '```'].join('\n'),
  ].join('\n\n');
}

function optionLines(options: Command['options']): string[] {
  return Object.entries(options).map(([key, option]) => `- \`${optionText(key, option)}\`: ${optionAbout(option)}`);
}
