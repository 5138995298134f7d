// The reference page of the command line, made of the table of commands.
import { type Command, GROUPS } from '../../src/cli/command.js';
import { optionAbout, optionText, usageOf } from '../../src/cli/help.js';

const INTRODUCTION = `# Command line

This page is made of the command line's own table of commands; \`everstep COMMAND --help\` says the same. The [tour](../guides/command-line.md) shows how the commands are used.

## The database

A command works on the database that \`--sys-db-url\` names; else on that of \`DBOS_SYSTEM_DATABASE_URL\`; else on that of [dbos-config.yaml](configuration.md#dbos-configyaml) in the current directory, found as [at launch](configuration.md#which-system-database). On Postgres the schema is that of \`--schema\`, else that of the file, else \`dbos\`. Passwords are never written.

Only \`migrate\`, \`schema\` and \`reset\` change tables; the others need tables at the version of this release.

## Values

| Placeholder | What to write |
| --- | --- |
| \`TIME\` | ISO 8601, such as \`2026-01-31T12:00:00Z\`, or a duration before now, such as \`2h\`, or \`now\` |
| \`DURATION\` | \`30s\`, \`15m\`, \`12h\`, \`7d\`, \`2h30m\`; a number alone is in seconds |
| \`JSON\` | JSON, in single quotes in a shell |
| \`ID…\` | one or several; \`-\` reads them from standard input, one on each line |

\`--\` ends the options: what comes behind it is an argument, also if it begins with a dash.

## Output

- **For people**: tables that fit the terminal, in colour unless \`NO_COLOR\` is set. What is not a terminal gets neither colours nor shortened texts.
- **For programs**: \`--json\` writes one JSON document. Times in it are milliseconds since the epoch where they are numbers. Fields are added in later releases, never renamed. \`workflow export\` writes JSON lines.
- Questions, progress and errors go to standard error. \`EVERSTEP_DEBUG=1\` adds where an error comes from.
- Ctrl-C ends long work after the part that is under way. Pressed twice, it ends at once.

| Exit code | Meaning |
| --- | --- |
| 0 | done |
| 1 | failed; for \`doctor\`: something is wrong |
| 2 | called in a wrong way |
| 3 | not found |
| 130 | interrupted |
`;

export function referencePage(commands: readonly Command[]): string {
  const own = commands.filter(({ name }) => !name.includes(' '));
  const groups = Object.entries(GROUPS).map(([group, { about, aliases }]) => {
    const members = commands.filter(({ name }) => name.startsWith(`${group} `));
    const other = aliases.map((alias) => `\`${alias}\``).join(' or ');
    return [`## everstep ${group}\n\n${about}. Also written ${other}.`, ...members.map(section)].join('\n\n');
  });
  return [INTRODUCTION, '## Commands', ...own.map(section), ...groups].join('\n\n');
}

function section(command: Command): string {
  const { name, about, details, parameter, options, examples } = command;
  const rows = Object.entries(options).map(
    ([key, option]) => `| \`${cell(optionText(key, option))}\` | ${cell(optionAbout(option))} |`,
  );
  return [
    `### everstep ${name}`,
    `${about}.${details === undefined ? '' : ` ${details}`}`,
    `Usage: \`${usageOf(command)}\``,
    ...(parameter === undefined ? [] : [`\`${parameter.name}\`: ${parameter.about}.`]),
    ...(rows.length === 0 ? [] : [['| Option | Meaning |', '| --- | --- |', ...rows].join('\n')]),
    ['```sh', ...examples.map(([line, what]) => `${line}   # ${what}`), '```'].join('\n'),
  ].join('\n\n');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
