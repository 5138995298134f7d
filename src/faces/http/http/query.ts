// Parses query parameters into the types their checks expect.
import { invalid, readRequest } from './refusal.js';
import type { Check, Fields, JSONSchema } from '../../../kernel/check/validation.js';

/** Reads the query string. A parameter with several values is repeated. */
export function readQuery<T>(fields: Fields, check: Check<T>, parameters: URLSearchParams): T {
  const given: Record<string, unknown> = {};
  for (const key of new Set(parameters.keys())) {
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
    given[key] = field ? fromTexts(field.schema, parameters.getAll(key), key) : parameters.get(key);
  }
  return readRequest(check, given, 'The query');
}

function fromTexts(schema: JSONSchema, texts: readonly string[], key: string): unknown {
  if (schema['type'] === 'array') return texts.map((value) => fromText(schema['items'] as JSONSchema, value, key));
  const [value = ''] = texts;
  if (texts.length > 1) throw invalid(`${key} must not be repeated.`);
  return fromText(schema, value, key);
}

/** Text that is not a number stays text, and the check refuses it. */
function fromText(schema: JSONSchema, value: string, key: string): unknown {
  switch (schema['type']) {
    case 'integer':
    case 'number':
      return value.trim() === '' || Number.isNaN(Number(value)) ? value : Number(value);
    case 'boolean':
      return value === 'true' ? true : value === 'false' ? false : value;
    case 'object':
      return parseJSON(value, key);
    default:
      return value;
  }
}

function parseJSON(value: string, key: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    // The parser's own message quotes the text, which may be long.
    throw invalid(`${key} must be a JSON object.`);
  }
}
