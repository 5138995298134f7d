// The parameters of a URL, brought to the types that their shapes read.
import { invalid } from './refusal.js';
import { type Fields, type JSONSchema, readFields, type ReadFields } from '../shape.js';

/** Reads the query string. A parameter that may have several values is repeated. */
export function readQuery<F extends Fields>(fields: F, parameters: URLSearchParams): ReadFields<F> {
  const record: Record<string, unknown> = {};
  for (const key of new Set(parameters.keys())) {
    const shape = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (!shape) throw invalid(`The parameter ${JSON.stringify(key.slice(0, 100))} is not known here.`);
    record[key] = fromTexts(shape.schema, parameters.getAll(key), key);
  }
  return readFields(fields, record, '');
}

function fromTexts(schema: JSONSchema, texts: readonly string[], key: string): unknown {
  if (schema['type'] === 'array') return texts.map((value) => fromText(schema['items'] as JSONSchema, value, key));
  const [value = ''] = texts;
  if (texts.length > 1) throw invalid(`${key} is given more than once.`);
  return fromText(schema, value, key);
}

/** What is no number stays a text, which the shape refuses. */
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
