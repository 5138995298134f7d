// Makes the source files that follow from others and are not in the repository: the migrations as code, and the types of
// the HTTP interface for the dashboard. Runs with `npm ci`, and before the checks and the build.
import { runSteps } from './run.mjs';

runSteps([
  ['migrations as code', process.execPath, 'scripts/embed-migrations.mjs'],
  ['types of the HTTP interface', 'tsx', 'dashboard/scripts/types.mjs'],
]);
