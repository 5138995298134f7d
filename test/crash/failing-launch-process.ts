// A process all of whose launches fail. It has to end by itself.
import { createDBOS, type DBOSInstance } from '../../src/faces/library/dbos.js';

const [, , brokenURLs = '[]', url = ''] = process.argv;

async function tryToLaunch(DBOS: DBOSInstance, systemDatabaseUrl: string): Promise<void> {
  DBOS.registerWorkflow(async () => 'done', { name: 'workflow' });
  DBOS.setConfig({ name: 'test', systemDatabaseUrl, runMigrations: false, executorID: 'one', logLevel: 'debug' });
  await DBOS.launch().then(
    () => process.stdout.write('launched\n'),
    (error: unknown) => process.stdout.write(`failed: ${String(error)}\n`),
  );
}

async function main(): Promise<void> {
  for (const brokenURL of JSON.parse(brokenURLs) as string[]) await tryToLaunch(createDBOS(), brokenURL);
  const withPlugin = createDBOS();
  withPlugin.registerLifecycleCallback({ initialize: () => Promise.reject(new Error('on purpose')) });
  await tryToLaunch(withPlugin, url);
  // The version of the application is computed from the source of its workflows.
  const unreadable = async (): Promise<string> => 'done';
  const withoutVersion = createDBOS();
  withoutVersion.registerWorkflow(unreadable, { name: 'unreadable' });
  unreadable.toString = () => {
    throw new Error('on purpose');
  };
  await tryToLaunch(withoutVersion, url);
  process.stdout.write('end\n');
}

void main();
