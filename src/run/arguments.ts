import type { Inputs } from '../kernel/codec/serializer.js';

/** The arguments to call a workflow function with. Named ones come last, in one object. */
export function argumentsOf({ args, namedArgs }: Inputs): unknown[] {
  const hasNamed = namedArgs !== undefined && Object.keys(namedArgs).length > 0;
  return hasNamed ? [...args, namedArgs] : [...args];
}
