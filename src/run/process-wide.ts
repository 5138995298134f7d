// State that a process has once, however often it has loaded the package (see `kernel/base/copies.ts`): `DBOS`, its registry, the
// ambient context. The copies use each other's objects, so they must be of one version.
import { LIBRARY_VERSION } from '../kernel/base/version.js';
import { MixedVersionsError } from '../kernel/errors/errors.js';

interface ProcessWide {
  readonly version: string;
  readonly parts: Map<string, unknown>;
}

const KEY = Symbol.for('everstep.process');

/** The part of this name, made by the first copy that asks for it. Call it when a module is loaded, not later. */
export function processWide<T>(name: string, create: () => T): T {
  const holder = globalThis as { [KEY]?: ProcessWide };
  const { version, parts } = (holder[KEY] ??= { version: LIBRARY_VERSION, parts: new Map() });
  if (version !== LIBRARY_VERSION) throw new MixedVersionsError(version, LIBRARY_VERSION);
  if (!parts.has(name)) parts.set(name, create());
  return parts.get(name) as T;
}
