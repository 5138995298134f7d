// Checks the options of routes when they are registered. A limit that is NaN would let everything pass.
import { inSeconds } from '../../../kernel/base/duration.js';
import {
  type Check,
  checkThat,
  filledName,
  func,
  INT_MAX,
  number,
  optional,
  positiveInteger,
  record,
  timed,
} from '../../../kernel/check/validation.js';

const START = {
  args: optional(func),
  queueName: optional(filledName),
  bodyLimit: optional(positiveInteger),
};

const KEYED = { ...START, keyScope: optional(func) };

/** `keyOf` checks each. */
const secrets: Check<unknown> = checkThat(
  'a secret, or a non-empty array of them',
  (value) => isString(value) || (Array.isArray(value) && value.length > 0 && value.every(isString)),
);

function isString(value: unknown): boolean {
  return typeof value === 'string';
}

export const toleranceSeconds: Check<number> = timed(number({ max: INT_MAX }), inSeconds);

export const startOptions = record(KEYED);
export const runOptions = record({ ...KEYED, timeoutMs: optional(timed(number({ max: INT_MAX }))) });
export const webhookOptions = record({ ...START, secrets, toleranceSeconds: optional(toleranceSeconds) });
