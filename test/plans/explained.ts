// Plans as `auto_explain` writes them into the server's log.
import { readFileSync } from 'node:fs';

/** What a server needs to log the plan of every statement. */
export const EXPLAINING = {
  shared_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': 0,
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_format': 'json',
  log_line_prefix: '%a ',
};

interface Node {
  readonly 'Node Type': string;
  readonly 'Total Cost': number;
  readonly 'Relation Name'?: string;
  /** From Postgres 18. Earlier versions add 1e10 to the cost. */
  readonly Disabled?: boolean;
  readonly Plans?: readonly Node[];
}

export interface Explained {
  /** The application name of the session. */
  readonly session: string;
  readonly text: string;
  readonly cost: number;
  /** Whether the server compiled the plan. */
  readonly isCompiled: boolean;
  /** Tables that are read from end to end. */
  readonly scanned: readonly string[];
  /** Whether it contains a node that settings have ruled out. */
  readonly isDisabled: boolean;
}

const ENTRY = /^(\S*) LOG: {2}duration: [\d.]+ ms {2}plan:$/;

/** The plans in a log. The lines of an entry after the first begin with a tab. */
export function readPlans(logPath: string): Explained[] {
  const plans: Explained[] = [];
  let entry: { session: string; lines: string[] } | undefined;
  for (const line of [...readFileSync(logPath, 'utf8').split('\n'), '']) {
    if (entry && line.startsWith('\t')) {
      entry.lines.push(line.slice(1));
      continue;
    }
    if (entry) plans.push(toPlan(entry.session, entry.lines.join('\n')));
    const begun = ENTRY.exec(line);
    entry = begun ? { session: begun[1] ?? '', lines: [] } : undefined;
  }
  return plans;
}

function toPlan(session: string, json: string): Explained {
  const { Plan: plan, ...rest } = JSON.parse(json) as { 'Query Text': string; Plan: Node; JIT?: unknown };
  return {
    session,
    text: rest['Query Text'].replaceAll(/\s+/g, ' ').trim(),
    cost: plan['Total Cost'],
    isCompiled: rest.JIT !== undefined,
    scanned: scannedBy(plan),
    isDisabled: isDisabled(plan),
  };
}

function scannedBy(node: Node): string[] {
  const own = node['Node Type'] === 'Seq Scan' ? [node['Relation Name'] ?? ''] : [];
  return [...own, ...(node.Plans ?? []).flatMap(scannedBy)];
}

function isDisabled({ Disabled, Plans = [] }: Node): boolean {
  return Disabled === true || Plans.some(isDisabled);
}
