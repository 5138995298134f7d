// The OpenAPI document of the JSON API, generated from the route table.
import { LIBRARY_VERSION } from '../../../kernel/base/version.js';
import type { Route } from './route.js';
import { type Check, record, type JSONSchema, schemaOf } from '../../../kernel/check/validation.js';
import { text } from '../shape.js';

const error = record({ error: record({ code: text, message: text }) }).named('Error');

const REFUSALS: Readonly<Record<string, string>> = {
  400: 'The request is invalid; the message names the field.',
  401: 'The token is missing or wrong.',
  403: 'The access is read-only, or the request comes from another site.',
  404: 'Not found.',
  409: 'The current state does not allow it.',
  413: 'The body is too large.',
  415: 'The media type of the body is not supported.',
  429: 'Too many wrong tokens.',
  500: 'Internal error; see the log of the process.',
  503: 'The database cannot be reached, or the process is not ready.',
};

export function openapiDocument(routes: readonly Route[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const one of routes) (paths[one.path] ??= {})[one.method.toLowerCase()] = operationOf(one);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Everstep',
      version: LIBRARY_VERSION,
      description: 'Workflows, queues and schedules of a system database.',
    },
    // Relative to the document, wherever the interface is mounted.
    servers: [{ url: '.' }],
    security: [{ token: [] }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas: componentsOf(routes),
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      responses: Object.fromEntries(
        Object.entries(REFUSALS).map(([status, description]) => [
          `Refused${status}`,
          { description, content: { 'application/json': { schema: schemaOf(error) } } },
        ]),
      ),
    },
  };
}

function operationOf(one: Route): Record<string, unknown> {
  const inPath = [...one.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 },
  }));
  const inQuery = Object.entries(one.query).map(([name, shape]) => ({
    name,
    in: 'query',
    required: !shape.isOptional,
    ...parameterSchema(schemaOf(shape)),
  }));
  const parameters = [...inPath, ...inQuery];
  return {
    operationId: operationID(one),
    tags: [one.tag],
    summary: one.summary,
    ...(one.isPublic && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(one.body && {
      requestBody: {
        required: 'required' in one.body.schema,
        content: { 'application/json': { schema: schemaOf(one.body) } },
      },
    }),
    ...(one.bodyType !== undefined && {
      requestBody: { required: true, content: { [one.bodyType]: { schema: { type: 'string' } } } },
    }),
    responses: {
      [String(one.status)]: responseOf(one),
      ...Object.fromEntries(
        Object.keys(REFUSALS).map((status) => [status, { $ref: `#/components/responses/Refused${status}` }]),
      ),
    },
  };
}

/** An object in a query is JSON. */
function parameterSchema(schema: JSONSchema): Record<string, unknown> {
  return schema['type'] === 'object' ? { content: { 'application/json': { schema } } } : { schema };
}

/** `GET /workflows/{workflowID}/steps` is `getWorkflowsWorkflowIDSteps`. */
function operationID({ method, path }: Route): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('');
}

function responseOf({ result, mediaType = 'application/json' }: Route): Record<string, unknown> {
  if (!result && mediaType === 'application/json') return { description: 'Done.' };
  const schema = result ? schemaOf(result) : { type: 'string' };
  return { description: 'The result.', content: { [mediaType]: { schema } } };
}

/** All named schemas. */
function componentsOf(routes: readonly Route[]): Record<string, JSONSchema> {
  const found: Record<string, JSONSchema> = {};
  const visit = (shape: Check<unknown>): void => {
    if (shape.name !== undefined) {
      if (found[shape.name]) return;
      found[shape.name] = shape.schema;
    }
    for (const part of shape.parts ?? []) visit(part);
  };
  visit(error);
  for (const { query, body, result } of routes) {
    for (const shape of [...Object.values(query), ...(body ? [body] : []), ...(result ? [result] : [])]) visit(shape);
  }
  return found;
}
