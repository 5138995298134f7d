// The tasks of workers that die, and of those that go on with what they leave.
import pg from 'pg';
import { answer, now, type RecoverAnswer, type RecoverCommand } from './commands.js';
import type { Extras } from './extras.js';
import type { Library } from './library.js';
import { pause, registerWorkload } from './workload.js';

/** Starts workflows that stop half-way for good, and says when all are there. Ends when it is killed. */
export async function hold(library: Library, workflows: number): Promise<void> {
  let held = 0;
  const { pausing } = registerWorkload(library, {
    onPausingStep() {
      held += 1;
      if (held === workflows) answer(now('ready'));
      return new Promise(() => {});
    },
  });
  await library.launch();
  await Promise.all(Array.from({ length: workflows }, () => library.startWorkflow(pausing)()));
}

/** Launches on a database with such workflows and waits until all have ended. */
export async function recover(library: Library, command: RecoverCommand, extras: Extras | undefined): Promise<void> {
  const { url, workflows } = command;
  let firstStepAt: number | undefined;
  let begun = 0;
  let statements: number | undefined;
  registerWorkload(library, {
    onPausingBegins() {
      begun += 1;
      if (begun === workflows) statements = extras?.counts.statementsBesides;
    },
    onPausingStep() {
      firstStepAt ??= performance.now();
    },
  });
  const client = new pg.Client(url);
  await client.connect();
  const startedAt = performance.now();
  await library.launch();
  // Asked on a connection of its own: waiting for a result is not what is measured.
  const ended = `SELECT count(*) AS count FROM dbos.workflow_status WHERE status = 'SUCCESS'`;
  while (Number((await client.query<{ count: string }>(ended)).rows[0]?.count) < workflows) await pause(20);
  const allDoneMs = performance.now() - startedAt;
  answer({ firstStepMs: (firstStepAt ?? NaN) - startedAt, allDoneMs, statements } satisfies RecoverAnswer);
  await client.end();
  await library.shutdown();
}

/** Says when it goes on with a workflow that another process has left. Ends when it is killed. */
export async function watch(library: Library): Promise<void> {
  registerWorkload(library, { onPausingStep: () => answer(now('continued')) });
  await library.launch();
  answer(now('ready'));
}
