import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { dropDatabase, setScene } from '../../plugins/transaction/scene.js';
import { DIALECTS } from '../../plugins/outbox/scene.js';
import { scratchFolder } from '../../rig/scratch.js';
import { call, type CallOptions } from './terminals.js';

afterAll(dropDatabase);

/** An application's database, and the command line on it. */
async function setup(name: (typeof DIALECTS)[number][1], { isInstalled = true } = {}) {
  const scene = await setScene(name);
  const { url, adapter } = scene;
  const query = (text: string) => scene.query(text);
  const everstep = (line: string, options: CallOptions = {}) =>
    call(`outbox ${line}`, { environment: { DBOS_DATABASE_URL: url }, ...options });
  if (isInstalled) await everstep('install');
  const isPostgres = adapter.dialect === 'postgres';
  const bury = async (count: number, topic = 'mail') => {
    for (let n = 0; n < count; n += 1) {
      const [payload, time] = isPostgres ? [`'{"n":${n}}'::bytea`, 'now()'] : [`CAST('{"n":${n}}' AS BLOB)`, '1000'];
      await query(
        `INSERT INTO outbox_dlq (original_id, queue, payload, headers, deliveries_count, created_at, failure_reason,
           last_exception, error_name, error_fingerprint)
         VALUES (${n + 1}, '${topic}', ${payload}, '{"content-type":"application/json"}', 3, ${time}, 'rejected',
           'Error: no', 'Error', 'f${n % 2}')`,
      );
    }
  };
  return { url, query, everstep, bury };
}

interface Finding {
  readonly kind: string;
  readonly subject: string;
  readonly message: string;
}

/** A file of its own, deleted when the test ends. */
function systemDatabase(): string {
  const folder = mkdtempSync(join(scratchFolder(), 'everstep-doctor-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return `sqlite:///${join(folder, 'system.sqlite')}`;
}

describe.each(DIALECTS)('everstep outbox on %s', (dialect, name) => {
  test('prints the DDL, creates the tables, and finds that they match', async () => {
    const { everstep, query } = await setup(name, { isInstalled: false });

    const missing = await everstep('check');
    const ddl = await everstep('ddl');
    const installed = await everstep('install --json');
    const twice = await everstep('install');
    const checked = await everstep('check');
    await query('DROP INDEX outbox_pending_idx');
    const drifted = await everstep('check --json');
    const fix = await everstep('check --sql');
    await query(fix.out);

    expect(missing).toMatchObject({ exitCode: 1 });
    expect(missing.out).toContain('missing_table');
    expect(ddl.out).toContain('CREATE TABLE "outbox_state"');
    expect(ddl.out.includes('BYTEA')).toBe(dialect === 'postgres');
    expect(installed.json()).toMatchObject({ created: ['outbox', 'outbox_dlq', 'outbox_state'] });
    expect(twice.exitCode).toBe(1);
    expect(checked).toMatchObject({ exitCode: 0, out: '✓ The tables match their declaration.\n' });
    expect(drifted.exitCode).toBe(1);
    expect(drifted.json()).toMatchObject({ ok: false, findings: [{ code: 'missing_index' }] });
    expect((await everstep('check')).exitCode).toBe(0);
  });

  test('counts messages, and says what is wrong', async () => {
    const { everstep, query, bury } = await setup(name);
    const old = dialect === 'postgres' ? `now() - INTERVAL '1 hour'` : '1000';
    const payload = dialect === 'postgres' ? `'1'::bytea` : `CAST('1' AS BLOB)`;
    await query(`INSERT INTO outbox (queue, payload, next_attempt_at) VALUES ('mail', ${payload}, ${old})`);
    await bury(1);

    const stats = await everstep('stats --json');
    const unhealthy = await everstep('health --max-dead-letters 0');
    await everstep('pause mail');
    const paused = await everstep('health');

    expect(stats.json()).toMatchObject([{ queue: 'mail', depth: 1, due: 1, deadLetters: 1 }]);
    expect(unhealthy.exitCode).toBe(1);
    expect(unhealthy.out).toMatch(
      /✗ "mail": the oldest message has been due for \d+ seconds\.\n✗ "mail": 1 dead letters/,
    );
    expect(paused).toMatchObject({ exitCode: 0, out: '! "mail" is paused.\n✓ No problems found.\n' });
  });

  test('is checked by the doctor, with the tables that there are', async () => {
    const { url, everstep, query, bury } = await setup(name);
    const old = dialect === 'postgres' ? `now() - INTERVAL '1 hour'` : '1000';
    const payload = dialect === 'postgres' ? `'1'::bytea` : `CAST('1' AS BLOB)`;
    const system = systemDatabase();
    await call(`migrate -s ${system}`);
    const doctor = async (environment: Record<string, string> = { DBOS_DATABASE_URL: url }) => {
      const { exitCode, json } = await call(`doctor -s ${system} --json`, { environment });
      const { findings, outbox } = json<{ findings: Finding[]; outbox?: object }>();
      return { exitCode, outbox, found: findings.filter(({ subject }) => subject === 'outbox') };
    };

    const fine = await doctor();
    await query(`INSERT INTO outbox (queue, payload, next_attempt_at) VALUES ('mail', ${payload}, ${old})`);
    await bury(2);
    const wrong = await doctor();
    await everstep('pause mail');
    await query('DELETE FROM outbox_dlq');
    const paused = await doctor();
    await query('DROP TABLE outbox_state');
    const unpaused = await doctor();
    const elsewhere = await doctor({});

    expect(fine).toMatchObject({ exitCode: 0, found: [], outbox: { queues: [], paused: [] } });
    expect(wrong).toMatchObject({ exitCode: 1, outbox: { queues: [{ queue: 'mail', due: 1, deadLetters: 2 }] } });
    expect(wrong.found.map(({ kind, message }) => `${kind}: ${message}`)).toEqual([
      expect.stringMatching(/^problem: 1 message\(s\) of topic "mail" are due, .* Start a process that consumes/),
      'problem: 2 dead letter(s) of topic "mail". See: everstep outbox dlq groups',
    ]);
    expect(paused).toMatchObject({
      exitCode: 0,
      found: [{ kind: 'notice', message: expect.stringContaining('Topic "mail" is paused with 1 message(s) due.') }],
    });
    expect(unpaused).toMatchObject({ exitCode: 1, found: [{ kind: 'problem' }] });
    expect(elsewhere).toEqual({ exitCode: 0, outbox: undefined, found: [] });
  });

  test('pauses and resumes a topic', async () => {
    const { everstep } = await setup(name);

    const paused = [await everstep('pause mail --json'), await everstep('pause mail')];
    const resumed = [await everstep('resume mail --json'), await everstep('resume mail')];

    expect(paused[0]?.json()).toEqual({ topic: 'mail', isPaused: true, changed: true });
    expect(paused[1]?.out).toBe('Topic "mail" was already paused.\n');
    expect(resumed[0]?.json()).toEqual({ topic: 'mail', isPaused: false, changed: true });
    expect(resumed[1]?.out).toBe('Topic "mail" was not paused.\n');
  });

  test('lists, groups and shows dead letters', async () => {
    const { everstep, bury } = await setup(name);
    await bury(5);

    const listed = await everstep('dlq list -t mail --limit 3 --json');
    const { letters, cursor } = listed.json<{ letters: { id: string; body: object }[]; cursor: string }>();
    const rest = await everstep(`dlq list --limit 3 --cursor ${cursor}`);
    const ids = await everstep('dlq list --ids');
    const groups = await everstep('dlq groups --json');
    const shown = await everstep(`dlq get ${letters[0]?.id}`);
    const missing = await everstep('dlq get 99');

    expect(letters).toHaveLength(3);
    expect(letters[0]?.body).toHaveProperty('n');
    expect(rest.out).toMatch(/^ID +TOPIC +FAILED +REASON/);
    expect(rest.out.trim().split('\n')).toHaveLength(3);
    expect(ids.out.trim().split('\n')).toHaveLength(5);
    expect(groups.json<{ count: number }[]>().map(({ count }) => count)).toEqual([3, 2]);
    expect(shown.out).toMatch(/^body +\{ n: \d \}$/m);
    expect(missing.exitCode).toBe(3);
  });

  test('requeues, archives and discards them by ID and by filter', async () => {
    const { everstep, bury, query } = await setup(name);
    await bury(6);
    const [first, second] = (await everstep('dlq list --ids --limit 1000')).out.trim().split('\n').toReversed();

    const counted = await everstep('dlq requeue -t mail --dry-run --json');
    const requeued = await everstep(`dlq requeue ${first} --body {"n":"edited"} --delay 1h`);
    const refused = await everstep('dlq archive -t mail', { input: ['n'] });
    const archived = await everstep('dlq archive --fingerprint f1 --limit 2', { input: ['y'] });
    const discarded = await everstep('dlq discard --all --yes --json');
    const [row] = await query('SELECT payload, replay_count FROM outbox');

    expect(counted.json()).toEqual({ requeued: 6, skipped: 0, dryRun: true });
    expect(requeued.out).toBe('1 dead letter requeued.\n');
    expect(Buffer.from(row?.['payload'] as Uint8Array).toString()).toBe('{"n":"edited"}');
    expect(Number(row?.['replay_count'])).toBe(1);
    expect(refused).toMatchObject({ exitCode: 1, out: '' });
    expect(archived.out).toBe('2 dead letters archived.\n');
    expect(discarded.json()).toEqual({ discarded: 3, dryRun: false });
    expect((await everstep('dlq list --archived yes --ids')).out.trim().split('\n')).toContain(second);
  });

  test('deletes what is too old, after it has said what that is', async () => {
    const { everstep, bury, query } = await setup(name);
    await bury(3);
    await query(`UPDATE outbox_dlq SET failed_at = ${dialect === 'postgres' ? `now() - INTERVAL '100 days'` : '1000'}`);
    await bury(1);

    const planned = await everstep('retention plan --keep 90d --json');
    const text = await everstep('retention plan --keep 90d');
    const ran = await everstep('retention run --keep 90d --yes --json');
    const converted = await everstep('retention convert --keep 90d --yes --json');

    expect(planned.json()).toMatchObject({ mode: 'batches', delete: 3 });
    expect(text.out).toContain('3 dead letters');
    expect(ran.json()).toMatchObject({ deleted: 3 });
    expect(converted.exitCode).toBe(dialect === 'postgres' ? 0 : 1);
    if (dialect === 'sqlite') return;
    expect(converted.json()).toEqual({ converted: true, moved: 1, deleted: 0 });
    expect((await everstep('retention plan --keep 90d --json')).json()).toMatchObject({ mode: 'partitions' });
    expect((await everstep('retention run --keep 90d --yes')).exitCode).toBe(0);
    expect((await everstep('check')).exitCode).toBe(0);
  });

  test('refuses what makes no sense', async () => {
    const { everstep, url } = await setup(name);

    expect(await everstep('dlq discard')).toMatchObject({ exitCode: 2 });
    expect(await everstep('dlq discard 1 --all')).toMatchObject({ exitCode: 2 });
    expect(await everstep('dlq list --limit 2000')).toMatchObject({ exitCode: 1 });
    expect(await everstep('stats', { environment: {} })).toMatchObject({ exitCode: 2 });
    expect((await everstep('dlq list --dlq-table nothing')).err).toContain('--dlq-table');
    expect((await call(`outbox stats -d ${url}`)).exitCode).toBe(0);
  });
});
