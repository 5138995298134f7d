// Everything a workflow brings along is hostile text: it must come back as it is, as JSON, and never as something that a
// browser would interpret.
import { describe, expect, test } from 'vitest';
import { createAdmin } from '../../../src/faces/http/admin.js';
import { forEachDialect, type TestDialect } from '../../rig/dialects.js';
import { createEngine } from '../../rig/engines.js';
import { callerOf, TOKEN } from './scene.js';

const HOSTILE = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  'javascript:alert(1)//',
  '\u202Egnp.exe\u2066\u200F',
  '\u001b[2J\u001b]0;title\u0007',
  "a/b?c#d&e=f %2F%00 ..\\'",
];
const MEGABYTE = 'x'.repeat(1_048_576);

async function launch(dialect: TestDialect) {
  const { DBOS } = await createEngine(dialect);
  const echo = DBOS.registerWorkflow(
    async (value: unknown) => {
      await DBOS.setEvent('large', MEGABYTE);
      await DBOS.runStep(async () => MEGABYTE, { name: '<b>step</b>' });
      return value;
    },
    { name: '<u>echo</u>' },
  );
  const failing = DBOS.registerWorkflow(
    async (message: string) => {
      throw new Error(message);
    },
    { name: 'failing' },
  );
  await DBOS.launch();
  const call = callerOf(createAdmin({ source: DBOS, token: TOKEN }).fetch);
  return { DBOS, echo, failing, call };
}

forEachDialect((dialect) => {
  describe('hostile values', () => {
    test('in IDs, names, queues and values come back as they are', async () => {
      const { DBOS, echo, call } = await launch(dialect);
      for (const text of HOSTILE) {
        await DBOS.registerQueue(text);
        const handle = await DBOS.startWorkflow(echo, { workflowID: text, queueName: text })(text);
        await handle.getResult();
        const [id, name] = [encodeURIComponent(text), encodeURIComponent(text)];

        const workflow = await call('GET', `/api/v1/workflows/${id}`);
        const timeline = await call('GET', `/api/v1/workflows/${id}/timeline`);
        const tree = await call('GET', `/api/v1/workflows/${id}/tree`);
        const queue = await call('GET', `/api/v1/queues/${name}/details`);
        const list = await call('GET', `/api/v1/workflows?queueName=${name}&workflowIDPrefix=${id}`);

        expect(workflow.body).toMatchObject({
          workflowID: text,
          queueName: text,
          output: { json: text, isExact: true },
        });
        expect(workflow.headers.get('content-type')).toBe('application/json; charset=utf-8');
        expect(workflow.headers.get('x-content-type-options')).toBe('nosniff');
        expect(timeline.body).toMatchObject({ workflowID: text });
        expect(tree.body.workflows).toMatchObject([{ workflowID: text }]);
        expect(queue.body).toMatchObject({ queueName: text });
        expect(list.body.workflows).toMatchObject([{ workflowID: text }]);
      }
    });

    test('in errors come back as they are, and are grouped in what needs attention', async () => {
      const { DBOS, failing, call } = await launch(dialect);
      for (const text of HOSTILE) {
        const handle = await DBOS.startWorkflow(failing)(text);
        await handle.getResult().catch(() => undefined);
        const { body } = await call('GET', `/api/v1/workflows/${handle.workflowID}`);
        expect(body.error.json.message).toBe(text);
      }

      const { body } = await call('GET', '/api/v1/attention');

      const reasons = (body.items as { reason: string }[]).map(({ reason }) => reason);
      expect(reasons).toContain(`Error: ${HOSTILE[0]}`);
      expect(reasons.length).toBe(HOSTILE.length);
    });

    test('of a megabyte are shortened, and can be downloaded', async () => {
      const { DBOS, echo, call } = await launch(dialect);
      const handle = await DBOS.startWorkflow(echo, { workflowID: 'large' })(MEGABYTE);
      await handle.getResult();
      const value = (query: string) => call('GET', `/api/v1/workflows/large/value?${query}`);

      const { body } = await call('GET', '/api/v1/workflows/large');
      const output = await value('of=output');

      for (const shown of [body.input, body.output]) {
        expect(shown).toMatchObject({ isExact: false, isTruncated: true });
        expect(JSON.stringify(shown).length).toBeLessThan(150_000);
      }
      expect(output.body).toBe(MEGABYTE);
      expect(output.headers.get('content-disposition')).toBe('attachment; filename="output.json"');
      expect((await value('of=input')).body).toEqual([MEGABYTE]);
      expect((await value('of=output&step=1')).body).toBe(MEGABYTE);
      expect((await value('of=event&key=large')).body).toBe(MEGABYTE);
      expect((await value('of=error')).body).toBeNull();
      for (const [query, status] of [
        ['of=output&step=99', 404],
        ['of=event&key=other', 404],
        ['of=event', 400],
        ['of=input&step=1', 400],
        ['of=everything', 400],
      ] as const) {
        expect([query, (await value(query)).status]).toEqual([query, status]);
      }
      expect((await call('GET', '/api/v1/workflows/none/value?of=output')).status).toBe(404);
    });
  });

  test('what the codec refuses to decode stays as it is stored', async () => {
    let hasKey = true;
    const serializer = {
      name: () => 'sealed',
      stringify: (value: unknown) => `sealed:${Buffer.from(JSON.stringify(value ?? null)).toString('base64')}`,
      parse: (text: string | null | undefined): unknown => {
        if (!hasKey) throw new Error('The key is not here.');
        return text == null ? text : JSON.parse(Buffer.from(text.slice(7), 'base64').toString());
      },
    };
    const { DBOS } = await createEngine(dialect, { serializer });
    const keep = DBOS.registerWorkflow(async () => 'secret', { name: 'keep' });
    await DBOS.launch();
    const call = callerOf(createAdmin({ source: DBOS, token: TOKEN }).fetch);
    const handle = await DBOS.startWorkflow(keep, { workflowID: 'kept' })();
    await handle.getResult();
    hasKey = false;

    const { body } = await call('GET', '/api/v1/workflows/kept');

    expect(body.output.json).toMatch(/^sealed:/);
    expect(JSON.stringify(body)).not.toContain('secret');
  });
});
