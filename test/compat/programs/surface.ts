// Members that programs and plugins expect to be there.
import * as sdk from '@dbos-inc/dbos-sdk';
import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk';
import { configure, describe, failureOf, print, settings, sql, within } from '../program.js';

const alerts = async (): Promise<void> => {};
DBOS.setAlertHandler(alerts);

function attempt(body: () => unknown): unknown {
  try {
    return { returned: typeof body() };
  } catch (error) {
    return describe(error);
  }
}

const second = attempt(() => DBOS.setAlertHandler(alerts));

const formats = DBOS.registerWorkflow(async () => String(DBOS.defaultSerializationType), {
  name: 'formats',
  serialization: 'portable',
});
const plainFormat = DBOS.registerWorkflow(async () => String(DBOS.defaultSerializationType), { name: 'plainFormat' });
const requests = DBOS.registerWorkflow(async () => [DBOS.requestObject(), DBOS.span === undefined], {
  name: 'requests',
});
const recoverable = DBOS.registerWorkflow(async () => 'recovered', { name: 'recoverable' });

async function main(): Promise<void> {
  configure();
  await DBOS.launch({ conductorMetadataOnlyMode: false });
  const found = await within({
    exports: async () =>
      ['ArgName', 'DBOSDataType', 'DEFAULT_RENAME_BATCH_SIZE', 'MethodParameter', 'ConfiguredInstance'].map(
        (name) => typeof (sdk as Record<string, unknown>)[name],
      ),
    'a second alert handler': async () => second,
    'an alert handler after the launch': async () => attempt(() => DBOS.setAlertHandler(alerts)),
    'clearing the registry while launched': async () => {
      try {
        (DBOS as unknown as { clearRegistry(): void }).clearRegistry();
        return 'cleared';
      } catch {
        return 'refused';
      }
    },
    'the format of a portable workflow': () => formats(),
    'the format of another workflow': () => plainFormat(),
    'the format of the context': () =>
      DBOS.runWithContext({ serializationType: 'portable' }, async () => String(DBOS.defaultSerializationType)),
    'the request object': () => DBOS.runWithContext({ request: { url: '/x' } }, () => requests()),
    'DBOS.request': () =>
      DBOS.runWithContext({ request: { url: '/x' } }, async () => [DBOS.request.url, DBOS.getRequest()?.url]),
    'DBOS.request outside of requests': () => failureOf(async () => DBOS.request),
    'an empty ID for the next workflow': () =>
      DBOS.runWithContext({ idAssignedForNextWorkflow: '' }, async () => (await recoverable()).length),
    'queues bound to a client': async () => {
      const own = await DBOS.registerQueue('bound', { concurrency: 2 });
      const client = await DBOSClient.create({ systemDatabaseUrl: settings.url });
      const theirs = await client.retrieveQueue('bound');
      const bound = [own.clientBound, theirs?.clientBound];
      await client.destroy();
      return bound;
    },
    'recovery by hand': async () => {
      await DBOS.startWorkflow(recoverable, { workflowID: 'lost' })().then((handle) => handle.getResult());
      await sql(
        `UPDATE workflow_status SET status = 'PENDING', executor_id = 'dead', owner_xid = NULL, output = NULL WHERE workflow_uuid = 'lost'`,
      );
      const recover = (DBOS as { recoverPendingWorkflows?: (ids: string[]) => Promise<{ workflowID: string }[]> })
        .recoverPendingWorkflows;
      if (!recover) return 'missing';
      const handles = await recover.call(DBOS, ['dead']);
      return [handles.map(({ workflowID }) => workflowID), await DBOS.retrieveWorkflow('lost').getResult()];
    },
  });
  await DBOS.shutdown();
  print(found);
}

void main();
