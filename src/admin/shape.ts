// The bounds of what clients may send: longer texts and lists are refused before anything is done with them.
import { array, type ArrayOptions, type Check, string } from '../model/validation/validation.js';

const TEXT_MAX = 10_000;
const LIST_MAX = 10_000;

export const text = string({ max: TEXT_MAX });

/** A text that names something. */
export const nonEmpty = string({ min: 1, max: TEXT_MAX });

export function listOf<T>(item: Check<T>, { min, max = LIST_MAX }: ArrayOptions = {}): Check<T[]> {
  return array(item, { min, max });
}
