// The application version, computed from the workflows' source code: processes that run the same workflows get the same
// version, and any change to a workflow changes it.
import { createHash } from 'node:crypto';
import { LIBRARY_VERSION } from '../../kernel/base/version.js';
import type { Registry } from '../registration/registry.js';
import type { EngineConfig } from './config.js';

/** The end of `toString()` of a native or bound function, whose source is unknown. */
const NATIVE_CODE = /\{\s*\[native code\]\s*\}\s*$/;

/**
 * The MD5 of the sorted workflow sources, the library version and the application name. Undefined if a source is
 * unknown: a version computed without it would not change with it.
 */
export function computeApplicationVersion(
  sources: readonly string[],
  applicationName: string,
  libraryVersion: string,
): string | undefined {
  if (sources.some((source) => source.trim() === '' || NATIVE_CODE.test(source))) return undefined;
  const hash = createHash('md5');
  for (const source of sources.toSorted()) hash.update(source);
  return hash.update(libraryVersion).update(applicationName).digest('hex');
}

export function applicationVersionOf(registry: Registry, { name, logger }: EngineConfig): string {
  const sources = [...registry.registrations]
    .filter((registration) => registration.kind === 'workflow')
    .map((registration) => registration.origFunction.toString());
  const version = computeApplicationVersion(sources, name, LIBRARY_VERSION);
  if (version !== undefined) return version;
  logger.warn(
    'Cannot compute the application version: the source of a workflow is not available. Set applicationVersion in the configuration.',
  );
  return 'DEFAULT_VERSION';
}
