// The journal: a file to which processes append what the outside world would have seen of them, one line of JSON each.
// A line that is there stays there, also when its process is killed: the system has it by then.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export type Line = { readonly pid: number } & (
  | { readonly kind: 'run'; readonly workflowID: string }
  /** A step's body began. It returns the token, so that the checkpoint tells which execution it is of. */
  | {
      readonly kind: 'step';
      readonly workflowID: string;
      readonly stepID: number;
      readonly name: string;
      readonly token: string;
      readonly at: number;
    }
  /** The body of a job's step is about to return. */
  | { readonly kind: 'ended'; readonly workflowID: string; readonly at: number }
  | { readonly kind: 'woke'; readonly workflowID: string; readonly at: number }
  | { readonly kind: 'handle'; readonly workflowID: string }
  | { readonly kind: 'refused'; readonly workflowID: string; readonly reason: string }
  | { readonly kind: 'result'; readonly workflowID: string; readonly value: unknown }
  | { readonly kind: 'commit'; readonly number: number; readonly label: string }
);

type WithoutPid<L> = L extends unknown ? Omit<L, 'pid'> : never;

export class Journal {
  constructor(readonly path: string) {}

  write(line: WithoutPid<Line>): void {
    appendFileSync(this.path, `${JSON.stringify({ ...line, pid: process.pid })}\n`);
  }

  read(): Line[] {
    if (!existsSync(this.path)) return [];
    const text = readFileSync(this.path, 'utf8');
    return text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line);
  }
}

type Kind = Line['kind'];

export function linesOf<K extends Kind>(lines: readonly Line[], kind: K): Extract<Line, { kind: K }>[] {
  return lines.filter((line): line is Extract<Line, { kind: K }> => line.kind === kind);
}
