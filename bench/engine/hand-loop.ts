// The ceiling for the engine: what its tables can take from a loop that somebody wrote for exactly this load. A hundred
// workflows go in step; each operation of all of them is one guarded statement and one commit.
import type { Database, Row } from '../../src/database/database.js';
import { insertCheckpoints } from '../../src/run/rows/steps.js';
import { finishIfOwned, insertWorkflows } from '../../src/run/rows/workflows.js';
import type { Sql } from '../../src/kernel/sql/sql.js';
import { newWorkflow, step } from '../../test/rig/records.js';

export interface HandLoopOptions {
  readonly inFlight: number;
  readonly steps: number;
  readonly durationMs: number;
}

/** Workflows per second. */
export async function rateByHand(database: Database, options: HandLoopOptions): Promise<number> {
  const startedAt = performance.now();
  let count = 0;
  while (performance.now() < startedAt + options.durationMs) {
    await runTogether(database, options);
    count += options.inFlight;
  }
  return (count / (performance.now() - startedAt)) * 1000;
}

async function runTogether(database: Database, { inFlight, steps }: HandLoopOptions): Promise<void> {
  const commitAll = async (statement: Sql): Promise<void> => {
    const written: readonly Row[] = (await database.commit([statement]))[0] ?? [];
    if (written.length !== inFlight) throw new Error(`only ${written.length} of ${inFlight} rows were written`);
  };
  const workflows = Array.from({ length: inFlight }, () => newWorkflow());
  await commitAll(insertWorkflows(workflows));
  for (let stepID = 0; stepID < steps; stepID += 1) {
    const at = Date.now();
    await commitAll(
      insertCheckpoints(
        workflows.map(({ workflowID, creator }) => ({
          owner: creator,
          step: step(workflowID, stepID, { startedAt: at, completedAt: at }),
        })),
      ),
    );
  }
  await commitAll(
    finishIfOwned(
      workflows.map(({ workflowID, creator }) => ({
        workflowID,
        owner: creator,
        status: 'SUCCESS',
        output: '{"json":3,"__dbos_serializer":"superjson"}',
        error: null,
      })),
    ),
  );
}
