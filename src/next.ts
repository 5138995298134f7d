// `everstep/next`: for `instrumentation.ts` and `next.config.ts` of a Next.js application. Next.js bundles a module once for
// instrumentation and once for the routes, and evaluates it again after an edit. All of them share one `DBOS`; here it
// learns that what they register again is no mistake.
import { defaultRegistry } from './run/ambient.js';
import type { DBOSConfig } from './run/config/config.js';
import { DBOS } from './faces/library/dbos.js';

export interface NextOptions {
  readonly config: DBOSConfig;
  /** Imports the modules that register workflows, steps, queues and schedules. */
  readonly workflows: () => Promise<unknown>;
}

/** Loads the workflows and launches `DBOS`. Call it in `register()` of `instrumentation.ts`, on the Node.js runtime. */
export async function launchInNext({ config, workflows }: NextOptions): Promise<void> {
  defaultRegistry.isReloadable = true;
  await workflows();
  // Called again after an edit in development.
  if (defaultRegistry.engine) return;
  DBOS.setConfig(config);
  await DBOS.launch();
}

interface NextConfig {
  serverExternalPackages?: string[];
}

/** The configuration of Next.js with the packages that it must load instead of bundling them. */
export function withEverstep<Config extends NextConfig>(config: Config = {} as Config): Config {
  const external = new Set([...(config.serverExternalPackages ?? []), 'everstep', 'pg', 'better-sqlite3']);
  return { ...config, serverExternalPackages: [...external] };
}
