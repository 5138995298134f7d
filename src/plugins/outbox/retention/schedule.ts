// Runs the retention as a scheduled workflow: once per occurrence, in whichever process is there, and again after a crash.
import type { ReceivingHost } from '../../../run/plugin.js';
import type { Retention } from './retention.js';

/** What `DBOS` and the instances of `createDBOS` have beyond what receivers need. */
interface SchedulingHost extends ReceivingHost {
  registerWorkflow(
    func: (scheduled: Date, started: Date) => Promise<unknown>,
    config: { readonly name: string },
  ): (scheduled: Date, started: Date) => Promise<unknown>;
  registerScheduled(
    func: (scheduled: Date, started: Date) => Promise<unknown>,
    config: { readonly crontab: string },
  ): void;
  runStep<T>(func: () => Promise<T>, config: { readonly name: string }): Promise<T>;
}

export function scheduleRetention(
  host: ReceivingHost,
  retention: Retention,
  { name, crontab }: { readonly name: string; readonly crontab: string },
): void {
  // Every host is an instance of DBOS.
  const dbos = host as SchedulingHost;
  const workflow = dbos.registerWorkflow(() => dbos.runStep(() => retention.run(), { name: 'run' }), {
    name: `everstep.outbox.retention.${name}`,
  });
  dbos.registerScheduled(workflow, { crontab });
}
