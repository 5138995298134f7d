import { expect, test } from 'vitest';
import { findLost } from '../../../src/run/rows/owners.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

forEachDialect((dialect) => {
  test('a former owner of a workflow is lost, the present one is not, although both ask at once', async () => {
    const database = await dialect.create();
    const workflow = newWorkflow({ owner: 'present' });
    await database.run(insertWorkflows([workflow]));
    const { workflowID } = workflow;
    const runs = [
      { workflowID, owner: 'former' },
      { workflowID, owner: 'present' },
      { workflowID: 'nowhere', owner: 'present' },
    ];

    expect([...(await findLost(database, runs))]).toEqual([runs[0], runs[2]]);
  });
});
