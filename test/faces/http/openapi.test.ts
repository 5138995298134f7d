import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { LEGACY_ROUTES } from '../../../src/faces/http/legacy.js';
import { openapiDocument } from '../../../src/faces/http/http/openapi.js';
import { ROUTES } from '../../../src/faces/http/routes.js';
import { FILTERS, rowOf } from './reference.js';

// As a client sees it, without what JSON leaves out.
const document = JSON.parse(JSON.stringify(openapiDocument(ROUTES))) as Document;

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
}

interface Operation {
  readonly operationId: string;
  readonly tags: string[];
  readonly summary: string;
  readonly parameters?: Parameter[];
  readonly responses: Record<string, { description?: string; $ref?: string }>;
}

interface Document {
  readonly openapi: string;
  readonly info: { title: string; version: string };
  readonly tags: { name: string }[];
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, object> };
}

/** All objects in the document, each with its place. */
function* visit(value: unknown, place = '#'): Generator<readonly [string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [place, value as Record<string, unknown>];
  for (const [key, inner] of Object.entries(value)) {
    yield* visit(inner, `${place}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  }
}

function operations(): { path: string; method: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

describe('the OpenAPI document', () => {
  test('has all that such a document must have', () => {
    expect(document.openapi).toBe('3.1.0');
    expect(document.info).toMatchObject({ title: 'Everstep', version: expect.stringMatching(/^\d/) as string });
    for (const { path, operation } of operations()) {
      expect(path).toMatch(/^\//);
      expect(operation.summary).toMatch(/\.$/);
      expect(document.tags.map(({ name }) => name)).toContain(operation.tags[0]);
      expect(Object.keys(operation.responses).some((status) => status.startsWith('2'))).toBe(true);
      for (const response of Object.values(operation.responses))
        expect(response.description ?? response.$ref).toBeDefined();
    }
  });

  test('names each operation once', () => {
    const ids = operations().map(({ operation }) => operation.operationId);

    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toHaveLength(ROUTES.length);
  });

  test('declares the parts of each path, and no parameter twice', () => {
    for (const { path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const parameters = operation.parameters ?? [];
      const declared = parameters.filter((one) => one.in === 'path');
      expect(declared.map(({ name }) => name)).toEqual(inPath);
      expect(declared.every(({ required }) => required)).toBe(true);
      expect(new Set(parameters.map(({ name }) => name)).size).toBe(parameters.length);
    }
  });

  test('refers to nothing that is not there', () => {
    const places = new Set([...visit(document)].map(([place]) => place));

    const references = [...visit(document)].flatMap(([, value]) =>
      typeof value['$ref'] === 'string' ? value['$ref'] : [],
    );

    expect(references.length).toBeGreaterThan(100);
    expect(references.filter((reference) => !places.has(reference))).toEqual([]);
  });

  test('has schemas of known keywords and types', () => {
    const known = new Set(
      [
        '$ref',
        'type',
        'enum',
        'format',
        'description',
        'properties',
        'required',
        'additionalProperties',
        'items',
      ].concat(['anyOf', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems']),
    );
    const types = ['string', 'integer', 'number', 'boolean', 'array', 'object', 'null'];
    const check = (schema: Record<string, unknown>): void => {
      expect(Object.keys(schema).filter((key) => !known.has(key))).toEqual([]);
      if ('type' in schema) expect(types).toContain(schema['type']);
      const properties = (schema['properties'] ?? {}) as Record<string, Record<string, unknown>>;
      for (const name of (schema['required'] ?? []) as string[]) expect(Object.keys(properties)).toContain(name);
      const inner = [...Object.values(properties), schema['items'], schema['additionalProperties']];
      for (const one of [...inner, ...((schema['anyOf'] ?? []) as unknown[])]) {
        if (typeof one === 'object' && one !== null) check(one as Record<string, unknown>);
      }
    };

    for (const schema of Object.values(document.components.schemas)) check(schema as Record<string, unknown>);
    for (const [, value] of visit(document.paths))
      if ('schema' in value) check(value['schema'] as Record<string, unknown>);
  });
});

describe('the reference', () => {
  const page = readFileSync(fileURLToPath(new URL('../../../docs/reference/http.md', import.meta.url)), 'utf8');
  const lines = page.split('\n').map((line) => line.replaceAll(/ +/g, ' ').trim());

  test('lists every route with its fields, its answer and what it does', () => {
    const missing = ROUTES.map(rowOf)
      .map((row) => row.replaceAll(/ +/g, ' '))
      .filter((row) => !lines.includes(row));

    expect(missing).toEqual([]);
  });

  test('lists no route that is not there', () => {
    const listed = lines.flatMap((line) => /^\| `((?:GET|POST|PUT|PATCH|DELETE) [^`]+)` \|/.exec(line)?.[1] ?? []);
    const all = [...ROUTES, ...LEGACY_ROUTES].map(({ method, path }) => `${method} ${path}`);

    expect(listed.toSorted()).toEqual(all.toSorted());
  });

  test('describes every filter', () => {
    const section = page.slice(page.indexOf('## Filters'), page.indexOf('A page holds'));

    expect(FILTERS.filter((name) => !section.includes(`\`${name}\``))).toEqual([]);
  });
});
