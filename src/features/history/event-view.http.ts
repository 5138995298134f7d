// Events of a workflow's history as the API returns them.
import type { HistoryEvent } from './history.js';
import { integer, jsonObject, mapOf, optional, record } from '../../kernel/check/validation.js';
import { text } from '../../faces/http/shape.js';
import { showValue, shownValue } from '../../faces/http/views/value.js';

const PAYLOADS = ['input', 'result', 'error'];

export const eventView = record({
  workflowID: text,
  cursor: text.about('Pass it as `after` to continue behind this event.'),
  type: text,
  at: integer().about('Epoch milliseconds.'),
  step: optional(integer()),
  attempt: optional(integer()),
  executor: optional(text),
  actor: optional(text),
  details: jsonObject,
  payloads: optional(mapOf(shownValue).about('Inputs, results and errors, if asked for.')),
}).named('HistoryEvent');

export function viewEvent(event: HistoryEvent): object {
  const members = Object.entries(event.details);
  const isPayload = ([name, value]: [string, unknown]): boolean => PAYLOADS.includes(name) && value !== null;
  const payloads = members.filter(isPayload).map(([name, value]) => [name, showValue(value)] as const);
  return {
    ...event,
    details: Object.fromEntries(members.filter((member) => !isPayload(member))),
    ...(payloads.length > 0 && { payloads: Object.fromEntries(payloads) }),
  };
}
