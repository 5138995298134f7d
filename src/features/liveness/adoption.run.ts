// The setting `adopt`: at launch, logs what DBOS has left in flight, and takes it over if its processes are declared gone.
import { adoptWorkflows, findAdoptable } from '../version/adoption.js';
import type { Runtime } from '../../run/runtime.js';

/** Runs before anything is claimed. */
export async function adoptAtLaunch(runtime: Runtime): Promise<void> {
  const { applicationVersion, config, logger } = runtime;
  if (!config.adopt) return;
  const { gone = false, executorIDs, applicationVersions } = config.adopt;
  const filter = { leftBy: 'dbos', toVersion: applicationVersion, executorIDs, applicationVersions } as const;
  for (const group of await findAdoptable(runtime, filter)) {
    logger.info(
      `DBOS has left in flight: executor "${group.executorID ?? ''}", version "${group.applicationVersion ?? ''}": ` +
        `${group.running} running, ${group.waiting} waiting.`,
    );
  }
  if (gone) {
    logger.info(`Took over ${await adoptWorkflows(runtime, filter)} workflow(s). Remove the setting adopt now.`);
  } else {
    logger.info('Nothing was taken over. Set adopt.gone when the processes of DBOS have ended.');
  }
}
