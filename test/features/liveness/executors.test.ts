import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/kernel/base/clock.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import {
  insertIncarnation,
  type Incarnation,
  listPeers,
  type Peer,
  renewLease,
  surveyEngines,
  removeIncarnation,
} from '../../../src/features/liveness/executors.sql.js';
import { takeOver } from '../../../src/run/rows/lifecycle.js';
import { describePresence, presenceKey, presenceOn } from '../../../src/features/liveness/presence.sql.js';
import { Store } from '../../../src/run/writer/store.js';
import { insertWorkflows } from '../../../src/run/rows/workflows.js';
import { forEachDialect, onlyOn } from '../../rig/dialects.js';
import { newWorkflow } from '../../rig/records.js';

function incarnation(fields: Partial<Incarnation> = {}): Incarnation {
  return {
    incarnationID: 'b',
    executorID: 'vm-1',
    applicationName: 'test',
    applicationVersion: 'v1',
    host: hostname(),
    pid: process.pid,
    metadata: describePresence(true),
    ...fields,
  };
}

function peer(fields: Partial<Incarnation> = {}): Peer {
  return { ...incarnation(fields), isLeaseOver: false, isLate: false, leaseLeftMs: 1000, leaseMs: 1000, leaseUntil: 0 };
}

/** A process that does nothing; it is ended with the test. */
async function startProcess() {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  return child;
}

describe('executors', () => {
  forEachDialect((dialect) => {
    test('an engine sees the others and whether their lease is over, until they leave', async () => {
      const database = await dialect.create();
      await insertIncarnation(database, incarnation({ incarnationID: 'a' }), { leaseMs: 60_000 });
      await insertIncarnation(database, incarnation({ incarnationID: 'b' }), { leaseMs: 60_000 });
      await insertIncarnation(database, incarnation({ incarnationID: 'c' }), { leaseMs: -1000 });

      const peers = await listPeers(database, 'a');
      await removeIncarnation(database, 'b');

      expect(peers).toMatchObject([
        { ...incarnation({ incarnationID: 'b' }), isLeaseOver: false },
        { ...incarnation({ incarnationID: 'c' }), isLeaseOver: true },
      ]);
      expect((await listPeers(database, 'a')).map((one) => one.incarnationID)).toEqual(['c']);
    });

    test('an engine sees the others and the unregistered owners of workflows in one look', async () => {
      const database = await dialect.create();
      for (const incarnationID of ['a', 'b']) {
        await insertIncarnation(database, incarnation({ incarnationID }), { leaseMs: 60_000 });
      }
      const owners = ['a.1', 'b.1', 'gone.1', 'gone.2', 'foreign'];
      await database.run(insertWorkflows(owners.map((owner) => newWorkflow({ owner }))));

      expect(await surveyEngines(database)).toMatchObject({
        peers: [{ incarnationID: 'a' }, { incarnationID: 'b' }],
        unlisted: ['gone'],
      });
      await removeIncarnation(database, 'a');
      expect(await surveyEngines(database)).toMatchObject({
        peers: [{ incarnationID: 'b' }],
        unlisted: ['a', 'gone'],
      });
    });

    test('a lease is prolonged, unless the engine was taken for dead', async () => {
      const database = await dialect.create();
      await insertIncarnation(database, incarnation(), { leaseMs: -1000 });

      expect(await renewLease(database, 'b', { leaseMs: 60_000 })).toMatchObject({ isRenewed: true, wasLate: true });
      expect((await listPeers(database, 'a'))[0]?.isLeaseOver).toBe(false);
      expect(await renewLease(database, 'b', { leaseMs: 60_000 })).toMatchObject({ isRenewed: true, wasLate: false });
      await removeIncarnation(database, 'b');
      expect(await renewLease(database, 'b', { leaseMs: 60_000 })).toEqual({ isRenewed: false });
    });

    test('who prolongs a lease hears when the first lease of a peer ends', async () => {
      const database = await dialect.create();
      await insertIncarnation(database, incarnation(), { leaseMs: 60_000 });
      expect(await renewLease(database, 'b', { leaseMs: 60_000 })).toMatchObject({ peersLeftMs: Infinity });

      await insertIncarnation(database, { ...incarnation(), incarnationID: 'c' }, { leaseMs: 50_000 });
      await insertIncarnation(database, { ...incarnation(), incarnationID: 'd' }, { leaseMs: 40_000 });
      const { peersLeftMs } = await renewLease(database, 'b', { leaseMs: 60_000 });

      expect(peersLeftMs).toBeLessThanOrEqual(40_000);
      expect(peersLeftMs).toBeGreaterThan(0);
    });

    test('an engine that has prolonged its lease in time keeps its place and its workflows', async () => {
      const database = await dialect.create();
      const [living, late] = [newWorkflow({ owner: 'living.1' }), newWorkflow({ owner: 'late.1' })];
      await database.run(insertWorkflows([living, late]));
      await insertIncarnation(database, incarnation({ incarnationID: 'living' }), { leaseMs: 60_000 });
      await insertIncarnation(database, incarnation({ incarnationID: 'late' }), { leaseMs: -1000 });

      const [seenLate, seenLiving] = await listPeers(database);
      await renewLease(database, 'living', { leaseMs: 70_000 });

      const kept = await takeOver(database, 'living', seenLiving?.leaseUntil);
      const recovered = await takeOver(database, 'late', seenLate?.leaseUntil);

      expect(kept).toBeUndefined();
      expect(recovered?.map((changed) => changed.workflowID)).toEqual([late.workflowID]);
      expect((await listPeers(database, 'me')).map((one) => one.incarnationID)).toEqual(['living']);
    });

    test('a process of this machine is gone when it is gone, or when another has its number', async () => {
      const database = await dialect.create();
      const presence = presenceOn(database, { clock: systemClock });
      const child = await startProcess();
      const pid = child.pid ?? 0;
      const living = peer({ pid, metadata: describePresence(false).replace(/"birth":[^,]*/, '"birth":null') });

      expect(await presence.isGone(peer({ metadata: describePresence(false) }))).toBe(false);
      expect(await presence.isGone(living)).toBe(false);
      const suspected = presence.untilSuspected(living, new AbortController().signal);
      child.kill('SIGKILL');
      await suspected;

      expect(await presence.isGone(living)).toBe(true);
      if (process.platform === 'linux') {
        expect(
          await presence.isGone(peer({ metadata: describePresence(true).replace(/"birth":"\d+"/, '"birth":"1"') })),
        ).toBe(true);
      }
    });

    test('a process in another container of the same name is not looked for here', async () => {
      const presence = presenceOn(await dialect.create(), { clock: systemClock });
      const metadata = JSON.stringify({ place: 'another boot', birth: '1', hasLock: false });

      expect(await presence.isGone(peer({ pid: 999_999, metadata }))).toBe(false);
    });

    test('of a process on another machine without a lock nobody can tell', async () => {
      const presence = presenceOn(await dialect.create(), { clock: systemClock });

      expect(await presence.isGone(peer({ host: 'elsewhere', metadata: describePresence(false) }))).toBe(false);
    });
  });

  onlyOn('postgres', (dialect) => {
    test('a process on another machine is gone when its session lock is free for a while', async () => {
      const url = await dialect.createURL();
      const watcher = await dialect.open(url);
      const presence = presenceOn(watcher, { clock: systemClock });
      const remote = peer({ host: 'elsewhere' });
      const store = await Store.open({ url, logger: silentLogger, sessionLock: presenceKey(remote.incarnationID) });

      expect(await presence.isGone(remote)).toBe(false);
      const suspected = presence.untilSuspected(remote, new AbortController().signal);
      await store.close();
      await suspected;

      expect(await presence.isGone(remote)).toBe(true);
    });

    test('waiting for a peer ends when it is no longer wanted', async () => {
      const url = await dialect.createURL();
      const presence = presenceOn(await dialect.open(url), { clock: systemClock });
      const remote = peer({ host: 'elsewhere' });
      const store = await Store.open({ url, logger: silentLogger, sessionLock: presenceKey(remote.incarnationID) });
      const controller = new AbortController();

      const waiting = presence.untilSuspected(remote, controller.signal);
      const refused = expect(waiting).rejects.toThrow();
      setTimeout(() => controller.abort(), 50);

      await refused;
      await store.close();
    });
  });
});
