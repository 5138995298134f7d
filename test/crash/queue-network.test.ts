// Connections that break during a claim of a limited queue.
import { expect, onTestFinished, test, vi } from 'vitest';
import type { QueueSettings } from '../../src/features/queue/queue.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import { onlyOn } from '../rig/dialects.js';
import { type Proxy, startProxy } from '../rig/proxy.js';
import { linesOf } from './journal.js';
import { describeCommit } from './kill-points.js';
import { until } from './processes.js';
import { enqueueJobs, expectJobsDone, expectLimitsKept, setQueueScene, untilAllDone } from './queue-scene.js';
import { idsOf, launchHere } from './setup.js';

const JOBS = 40;
const LOSSES = 3;

/** Breaks the connection of every third claim of this process, `LOSSES` times. Tells how often it has. */
function breakClaims(proxy: Proxy, fault: 'answer' | 'request'): () => number {
  const { commit } = PostgresDatabase.prototype as { commit: typeof PostgresDatabase.prototype.commit };
  const spy = vi.spyOn(PostgresDatabase.prototype, 'commit');
  onTestFinished(() => spy.mockRestore());
  let [claims, losses] = [0, 0];
  spy.mockImplementation(function (this: PostgresDatabase, statements) {
    if (describeCommit(this, statements).includes('claim')) claims += 1;
    if (claims % 3 === 2 && losses < LOSSES) {
      losses += 1;
      claims += 1;
      if (fault === 'answer') proxy.loseNextAnswer();
      else proxy.loseNextRequest();
    }
    return commit.call(this, statements);
  });
  return () => losses;
}

onlyOn('postgres', (dialect) => {
  test.each<['answer' | 'request', QueueSettings]>([
    ['answer', { globalConcurrency: 2 }],
    ['answer', { partitionConcurrency: 1, globalConcurrency: 3 }],
    ['request', { globalConcurrency: 2 }],
  ])('a claim whose %s is lost leaks no place and runs nothing twice: %o', async (fault, limits) => {
    const scene = await setQueueScene(dialect, 0);
    await scene.operator.DBOS.registerQueue('q', limits);
    const proxy = await startProxy(scene.url);
    await launchHere({ url: proxy.url, journal: scene.journal });
    const losses = breakClaims(proxy, fault);

    const jobs = idsOf('job', JOBS).map((workflowID, index) => ({
      workflowID,
      lengthMs: 10,
      partitionKey: limits.partitionConcurrency === undefined ? undefined : `p${index % 4}`,
    }));
    await enqueueJobs(scene, 'q', jobs);
    await until('a connection was broken', () => losses() > 0);
    await scene.launch(1);
    await untilAllDone(scene, JOBS);

    const done = await expectJobsDone(scene, 'q');
    expectLimitsKept(scene, done, limits, { processes: [...scene.workers, process] });
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(JOBS);
    for (const { recoveryAttempts, workflowID } of (await scene.tables()).workflows.values()) {
      expect(recoveryAttempts, workflowID).toBe(1);
    }
  });
});
