// Size limits for client input: longer texts and lists are refused up front.
import { array, type ArrayOptions, type Check, string } from '../../kernel/check/validation.js';

const TEXT_MAX = 10_000;
const LIST_MAX = 10_000;

export const text = string({ max: TEXT_MAX });

/** An ID or a name. */
export const nonEmpty = string({ min: 1, max: TEXT_MAX });

export function listOf<T>(item: Check<T>, { min, max = LIST_MAX }: ArrayOptions = {}): Check<T[]> {
  return array(item, { min, max });
}
