// Role checks: whether a caller may call a function, and in which role.
import { DBOSNotAuthorizedError } from '../../kernel/errors/errors.js';
import type { Context } from '../ambient.js';
import type { Registration, Registry } from './registry.js';

/** The first required role that the caller has. Throws if it has none of them. */
export function authorize(
  { registry }: { readonly registry: Registry },
  registration: Registration,
  context: Context | undefined,
  given: { readonly authenticatedRoles?: readonly string[] } = {},
): string {
  const required =
    registration.requiredRoles ??
    (registration.ownerClass ? registry.classOf(registration.ownerClass).defaultRoles : undefined);
  if (required === undefined || required.length === 0) return context?.assumedRole ?? '';
  const roles = given.authenticatedRoles ?? context?.authenticatedRoles ?? [];
  const role = required.find((one) => roles.includes(one));
  if (role !== undefined) return role;
  throw new DBOSNotAuthorizedError(
    `User does not have a role with permission to call ${registration.name}. It needs one of: ${required.join(', ')}.`,
  );
}
