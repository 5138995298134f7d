// The roles of a workflow's caller, as they are stored: a JSON array of strings.
import { UnreadableValueError } from '../errors/errors.js';

/** No roles if nothing is stored. Anything but a list of strings is refused: a text would match parts of itself. */
export function readRoles(stored: string | null): string[] {
  if (stored === null || stored === '') return [];
  let roles: unknown;
  try {
    roles = JSON.parse(stored);
  } catch {
    roles = undefined;
  }
  if (Array.isArray(roles) && roles.every((role): role is string => typeof role === 'string')) return roles;
  throw new UnreadableValueError('JSON', String(stored), { reason: 'roles are stored as a JSON array of strings' });
}
