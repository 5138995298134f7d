// Starts the files that take longest first. A fresh checkout has no times of an earlier run to go by, and one of these that
// began last would keep one worker busy while the others have nothing left to do.
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Of those that take more than some 30 seconds, the longest first. */
const LONGEST = [
  'crash/kill-points',
  'crash/mail',
  'frameworks/templates-postgres',
  'frameworks/templates-sqlite',
  'crash/campaign-postgres',
  'crash/campaign-sqlite',
  'frameworks/next',
  'frameworks/templates',
  'crash/parking',
  'crash/history',
  'crash/schedules',
  'crash/churn',
  'crash/queue-kills',
  'crash/queue-limits',
  'crash/queue-starts',
  'crash/queue-changes',
  'compat/shared-database',
  'compat/packaging',
  'compat/packaging-alias',
  'dashboard/letters',
  'frameworks/bundlers',
  'frameworks/versions',
  'outbox/kills',
  'engine/schedules/schedule-engines',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const rank = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return rank < 0 ? LONGEST.length : rank;
    };
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}
