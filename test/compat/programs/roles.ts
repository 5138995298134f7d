// Required roles of workflows, steps and plain methods. Only DBOS 4 has them.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { failureOf, runProgram } from '../program.js';

class Vault {
  @DBOS.requiredRole(['owner'])
  @DBOS.workflow()
  static async open(): Promise<string> {
    return DBOS.assumedRole;
  }

  @DBOS.workflow()
  @DBOS.requiredRole(['owner'])
  static async shut(): Promise<string> {
    return DBOS.assumedRole;
  }

  @DBOS.step()
  @DBOS.requiredRole(['owner'])
  static async count(): Promise<string> {
    return DBOS.assumedRole;
  }

  @DBOS.requiredRole(['owner', 'clerk'])
  static async inner(): Promise<string> {
    return DBOS.assumedRole;
  }

  @DBOS.workflow()
  static async outer(): Promise<unknown> {
    return [await failureOf(() => Vault.inner()), await failureOf(() => Vault.count())];
  }
}

const calls = {
  'a role above the workflow': () => Vault.open(),
  'a role below the workflow': () => Vault.shut(),
  'a step outside a workflow': () => Vault.count(),
  'a plain method': () => Vault.inner(),
  'inner methods': () => Vault.outer(),
};

async function main(): Promise<void> {
  const checks = Object.entries(calls).map(([name, call]) => [
    name,
    async () => ({
      none: await failureOf(call),
      clerk: await DBOS.withAuthedContext('ann', ['clerk'], () => failureOf(call)),
      owner: await DBOS.withAuthedContext('ann', ['owner'], () => failureOf(call)),
    }),
  ]);
  await runProgram(Object.fromEntries(checks));
}

void main();
