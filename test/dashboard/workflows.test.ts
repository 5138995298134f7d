import { expect, test } from 'vitest';
import { watchErrors, withBrowser } from '../rig/browser.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { until } from '../rig/manual-clock.js';
import { confirm, HOSTILE, setup, TIMEOUT } from './scene.js';

withBrowser((browser) => {
  forEachDialect((dialect) => {
    test('the list filters by state and ID, keeps both in the URL, and goes back', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      await DBOS.startWorkflow(workflows.greet, { workflowID: 'good' })('world').then((one) => one.getResult());
      await DBOS.startWorkflow(workflows.refuse, { workflowID: 'bad' })().then((one) =>
        one.getResult().catch(() => {}),
      );
      const page = await browser.open(`${ui}/workflows`);
      const row = (id: string) => page.locator(`[data-id="${id}"]`);

      await row('good').waitFor();
      await page.getByRole('button', { name: 'any state ▾' }).click();
      await page.getByLabel('error').check();
      await row('good').waitFor({ state: 'detached' });
      expect(page.url()).toContain('status=ERROR');
      await page.goBack();
      await row('good').waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('goo');
      await page.keyboard.press('Enter');
      await row('bad').waitFor({ state: 'detached' });

      expect(page.url()).toContain('workflowIDPrefix=goo');
      await page.getByTestId('total').filter({ hasText: /^1$/ }).waitFor();
    });

    test('selected workflows are cancelled, resumed and deleted from the keyboard', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      for (const workflowID of ['w-1', 'w-2']) await DBOS.startWorkflow(workflows.approve, { workflowID })();
      const page = await browser.open(`${ui}/workflows`);
      const count = async (word: string, number: number): Promise<void> =>
        page
          .locator('.list-row .state', { hasText: word })
          .nth(number - 1)
          .waitFor();
      const selectAll = async (): Promise<void> => {
        await page.keyboard.press('j');
        await page.keyboard.press('x');
        await page.keyboard.press('j');
        await page.keyboard.press('x');
        await page.getByText('2 selected').waitFor();
      };

      await count('running', 2);
      await selectAll();
      await page.keyboard.press('c');
      await page.getByRole('heading', { name: 'Cancel 2 workflows of approve?' }).waitFor();
      await confirm(page, 'Cancel');
      await page.getByText('2 of 2 cancelled.').waitFor();
      await count('cancelled', 2);
      await page.getByLabel('Select all loaded rows').check();
      await page.keyboard.press('r');
      await confirm(page, 'Resume');
      await count('running', 2);
      await page.getByLabel('Select all loaded rows').check();
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      await confirm(page, 'Delete');

      await page.getByText('No workflow has run yet.').waitFor();
      expect(await DBOS.listWorkflows({})).toEqual([]);
    });

    test('a parked workflow says what it waits for', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect, { isOpen: true }, { parkAfterMs: 50 });
      await DBOS.startWorkflow(workflows.approve, { workflowID: 'w' })();
      await until(async () => (await DBOS.getWorkflowStatus('w'))?.waitingFor !== undefined);
      const page = await browser.open(`${ui}/workflows`);
      const row = page.locator('[data-id="w"]');

      await row.getByText('parked').waitFor();
      await row.getByText('waits for message approval').waitFor();
      await row.getByRole('link').first().click();

      await page.locator('.fact', { hasText: 'waits for' }).getByText('message approval').waitFor();
      await page.locator('.fact', { hasText: 'at the latest' }).getByText('in 23 h').waitFor();
    });

    test('what a workflow stores is shown as text', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      const big = await DBOS.startWorkflow(workflows.greet, { workflowID: 'big' })('x'.repeat(1_000_000));
      const bad = await DBOS.startWorkflow(workflows.hostile, { workflowID: HOSTILE })(HOSTILE);
      await Promise.allSettled([big.getResult(), bad.getResult()]);
      const page = await browser.open(`${ui}/workflows`);
      const errors = watchErrors(page);

      await page.getByText('\\u202etxt.exe').first().waitFor();
      for (const tab of ['input', 'output', 'steps', 'messages', 'history', 'tree']) {
        await page.goto(`${ui}/workflows/${encodeURIComponent(HOSTILE)}?tab=${tab}`);
        await page.locator('main').getByText('\\u202etxt.exe').first().waitFor();
      }
      await page.goto(`${ui}/workflows/big?tab=input`);
      await page.getByRole('button', { name: /show all/ }).waitFor();

      expect(await page.evaluate('window.hacked')).toBeUndefined();
      expect(await page.locator('img, iframe').count()).toBe(0);
      expect(errors).toEqual([]);
    });
  });

  onlyOn('sqlite', (dialect) => {
    test('a timeline of 5,000 steps has few elements, and a map', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      await DBOS.startWorkflow(workflows.long, { workflowID: 'long' })(5000).then((one) => one.getResult());
      const page = await browser.open(`${ui}/workflows/long`);

      await page.getByText('5,000 rows').waitFor();
      await page.getByTestId('minimap').click({ position: { x: 50, y: 55 } });
      await page
        .getByRole('button', { name: /^step 4[5-9]\d\d$/ })
        .first()
        .waitFor();
      await page.getByRole('button', { name: 'Zoom in' }).click();

      expect(await page.locator('.timeline-row').count()).toBeLessThan(200);
    });

    test('a stream of 10,000 values stays at its end', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      await DBOS.startWorkflow(workflows.stream, { workflowID: 'stream' })(10_000).then((one) => one.getResult());
      const page = await browser.open(`${ui}/workflows/stream?tab=streams`);

      await page.getByText('10,000 values').waitFor();
      await page.locator('.stream-value code', { hasText: /^9999$/ }).waitFor();

      expect(await page.locator('.stream-value').count()).toBeLessThan(300);
    });

    test('deleting more than 100 workflows takes the number', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, call } = await setup(dialect);
      const body = { queueName: 'mail', workflowName: 'greet', args: ['x'], delaySeconds: 3600 };
      for (let index = 0; index < 120; index += 1) await call('POST', '/api/v1/workflows', body);
      const page = await browser.open(`${ui}/workflows`);

      await page.getByLabel('Select all loaded rows').check();
      await page.getByRole('button', { name: 'Select all that match' }).click();
      await page.getByText('120 selected').waitFor();
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      const button = page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true });
      expect(await button.isDisabled()).toBe(true);
      await page.getByLabel(/Type 120 to confirm/).fill('120');
      await confirm(page, 'Delete');
      await page.getByText('No workflow has run yet.').waitFor();

      expect(await DBOS.listWorkflows({})).toEqual([]);
    });

    test('keys lead through the pages', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      await DBOS.startWorkflow(workflows.greet, { workflowID: 'greet-1' })('world').then((one) => one.getResult());
      const page = await browser.open(`${ui}/`);
      await page.getByRole('heading', { name: 'Overview' }).waitFor();

      await page.keyboard.press('g');
      await page.keyboard.press('w');
      await page.locator('[data-id="greet-1"]').waitFor();
      await page.keyboard.press('j');
      await page.keyboard.press('o');
      await page.getByRole('button', { name: 'greet step' }).waitFor();
      await page.keyboard.press('?');
      await page.getByRole('heading', { name: 'Keys' }).waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('heading', { name: 'Keys' }).waitFor({ state: 'detached' });
      await page.keyboard.press('g');
      await page.keyboard.press('q');

      await page.getByRole('link', { name: 'mail', exact: true }).waitFor();
    });
  });
});
