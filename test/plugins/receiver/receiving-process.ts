// A process that receives from Redis and ends by SIGKILL at the point that it is told; without one, it works on until it is
// killed from outside. Started by kill.test.ts.
import { createDBOS } from '../../../src/faces/library/dbos.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { Receiver } from '../../../src/plugins/receiver/receiver.js';
import { redisAdapter } from '../../../src/plugins/receiver/adapters/redis.js';
import { Spy } from './spy.js';

interface Settings {
  readonly url: string;
  readonly port: number;
  readonly stream: string;
  readonly dieAt?: 'decoding' | 'acknowledging' | 'acknowledged';
}

const { url, port, stream, dieAt } = JSON.parse(process.argv[2] ?? '{}') as Settings;
const die = (): void => void process.kill(process.pid, 'SIGKILL');
const DBOS = createDBOS();
DBOS.setConfig({ name: 'test', applicationVersion: 'v1', systemDatabaseUrl: url, logger: silentLogger });
const spy = new Spy();
if (dieAt === 'acknowledging') spy.beforeAcknowledge = die;
if (dieAt === 'acknowledged') void spy.acknowledged.reach(1).then(die);
const receiver = new Receiver(spy.watch(redisAdapter({ host: '127.0.0.1', port })), { dbos: DBOS });
const work = DBOS.registerWorkflow(async (n: number) => n, { name: 'work' });
let decoded = 0;
receiver.registerConsumer(work, {
  stream,
  claimAfterMs: 200,
  batchSize: 10,
  decode: ({ fields }) => {
    decoded += 1;
    // In the middle of a batch.
    if (dieAt === 'decoding' && decoded === 5) die();
    return [Number(fields['n'])];
  },
});
await DBOS.launch();
