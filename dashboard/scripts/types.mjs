// Writes the types of the HTTP interface, as its OpenAPI document describes it. The file is not in the repository.
import { writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import { openapiDocument } from '../../src/faces/http/http/openapi.ts';
import { ROUTES } from '../../src/faces/http/routes.ts';

const TARGET = new URL('../src/api/schema.ts', import.meta.url);
const HEADER = '// Generated from the OpenAPI document by `scripts/generate.mjs`.\n';

const types = await openapiTS(openapiDocument(ROUTES), { alphabetize: true });
writeFileSync(TARGET, HEADER + astToString(types));
