// Writes the types of the HTTP interface, as its OpenAPI document describes it. With `--check` nothing is written: the
// run fails when the written file is stale.
//
//   tsx dashboard/scripts/types.mjs [--check]
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import { openapiDocument } from '../../src/admin/http/openapi.ts';
import { ROUTES } from '../../src/admin/routes.ts';

const TARGET = new URL('../src/api/schema.ts', import.meta.url);
const HEADER =
  '// Generated from the OpenAPI document by `dashboard/scripts/types.mjs`: change the routes, and run it again.\n';

const document = openapiDocument(ROUTES);
// The version changes with each release and means nothing here.
document.info.version = '0.0.0';
const text = HEADER + astToString(await openapiTS(document, { alphabetize: true }));

if (process.argv.includes('--check')) {
  if (readFileSync(TARGET, 'utf8') !== text) {
    console.error('dashboard/src/api/schema.ts is stale. Run: npx tsx dashboard/scripts/types.mjs');
    process.exitCode = 1;
  }
} else {
  writeFileSync(TARGET, text);
}
