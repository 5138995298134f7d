// The version of an application, computed from its code: two processes that run the same workflows get the same
// version, and any change to a workflow gives another.
import { createHash } from 'node:crypto';
import { LIBRARY_VERSION } from '../../base/version.js';
import type { Registry } from '../registration/registry.js';
import type { EngineConfig } from './config.js';

/** How the text of a function ends that is not written in JavaScript, or was made with `bind`. */
const NATIVE_CODE = /\{\s*\[native code\]\s*\}\s*$/;

/**
 * The MD5 of the workflows' sources, in an order of their own, then of the library's version, then of the
 * application's name. Undefined when one of the sources is unknown: a version without it would not change with it.
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

/** The version of the registered workflows. */
export function applicationVersionOf(registry: Registry, { name, logger }: EngineConfig): string {
  const sources = [...registry.registrations]
    .filter((registration) => registration.kind === 'workflow')
    .map((registration) => registration.origFunction.toString());
  const version = computeApplicationVersion(sources, name, LIBRARY_VERSION);
  if (version !== undefined) return version;
  logger.warn(
    'The application version cannot be computed from the source of the workflows. Set applicationVersion in the configuration.',
  );
  return 'DEFAULT_VERSION';
}
