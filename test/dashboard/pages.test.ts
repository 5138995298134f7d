import { expect, test } from 'vitest';
import { TOKEN } from '../faces/http/scene.js';
import { accessibilityProblems, watchErrors, withBrowser } from '../rig/browser.js';
import { forEachDialect, onlyOn } from '../rig/dialects.js';
import { choose, confirm, setup, TIMEOUT } from './scene.js';

withBrowser((browser) => {
  forEachDialect((dialect) => {
    test('every page follows WCAG AA and the content security policy', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows, call } = await setup(dialect);
      await DBOS.startWorkflow(workflows.greet, { workflowID: 'greet-1' })('world').then((one) => one.getResult());
      await DBOS.startWorkflow(workflows.refuse, { workflowID: 'refuse-1' })().then((one) =>
        one.getResult().catch(() => {}),
      );
      await call('POST', '/api/v1/schedules', {
        scheduleName: 'nightly',
        workflowName: 'greet',
        schedule: '0 3 * * *',
      });
      const page = await browser.open(`${ui}/workflows`, { reducedMotion: 'reduce' });
      const errors = watchErrors(page);

      for (const [path, sign] of [
        ['/', 'Started and ended'],
        ['/workflows', 'refuse-1'],
        ['/workflows/refuse-1', 'reserve'],
        ['/workflows/refuse-1?tab=output', 'card declined'],
        ['/workflows/refuse-1?tab=history', 'WorkflowFailed'],
        ['/workflows/refuse-1?tab=tree', 'this workflow'],
        ['/workflows/refuse-1?tab=messages', 'No message was sent to it.'],
        ['/queues?queue=mail', 'Save limits'],
        ['/schedules', 'nightly'],
        ['/outbox', 'No outbox is shown here.'],
        ['/executors', 'alive'],
        ['/retention', 'Clean up'],
        ['/settings', 'schema up to date'],
      ] as const) {
        await page.goto(ui + path);
        await page.getByText(sign).first().waitFor();
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          const problems = await accessibilityProblems(page);
          expect({ path, colorScheme, problems }).toEqual({ path, colorScheme, problems: [] });
        }
      }

      expect(errors).toEqual([]);
    });

    test('pages fit a phone', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, workflows } = await setup(dialect);
      await DBOS.startWorkflow(workflows.greet, { workflowID: 'greet-1' })('world').then((one) => one.getResult());
      const page = await browser.open(`${ui}/workflows`, { viewport: { width: 360, height: 740 } });

      for (const [path, sign] of [
        ['/', 'Started and ended'],
        ['/workflows', 'greet-1'],
        ['/workflows/greet-1', 'greet step'],
        ['/queues?queue=mail', 'Save limits'],
        ['/schedules', 'There is no schedule yet.'],
        ['/outbox', 'No outbox is shown here.'],
        ['/executors', 'alive'],
        ['/retention', 'Clean up'],
        ['/settings', 'schema up to date'],
      ] as const) {
        await page.goto(ui + path);
        await page.getByText(sign).first().waitFor({ state: 'attached' });
        expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 360]);
      }
    });
  });

  onlyOn('sqlite', (dialect) => {
    test('a lost connection shows a bar, and the page catches up when it is back', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, server, workflows } = await setup(dialect);
      const page = await browser.open(`${ui}/workflows`);
      await page.getByText('live', { exact: true }).waitFor();

      server.cut();
      await page.getByText('Connection lost.').waitFor();
      await DBOS.startWorkflow(workflows.greet, { workflowID: 'meanwhile' })('world').then((one) => one.getResult());
      server.reopen();

      await page.getByText('Connection lost.').waitFor({ state: 'detached' });
      await page.getByText('meanwhile').waitFor();
    });

    test('the theme can be switched', { timeout: TIMEOUT }, async () => {
      const { ui } = await setup(dialect);
      const page = await browser.open(`${ui}/settings`);

      await page.getByRole('button', { name: 'Colours: system' }).click();
      await page.getByRole('button', { name: 'Colours: light' }).click();
      await page.getByRole('button', { name: 'Colours: dark' }).waitFor();
      await page.reload();

      await page.locator('html[data-theme="dark"]').waitFor({ state: 'attached' });
    });
  });

  forEachDialect((dialect) => {
    test('people log in with the token, and again when their session is over', { timeout: TIMEOUT }, async () => {
      const { ui } = await setup(dialect, { token: TOKEN });
      const page = await browser.open(`${ui}/queues`);

      await page.getByLabel('Admin token').fill('wrong');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByText('The token is wrong.').waitFor();
      await page.getByLabel('Admin token').fill(TOKEN);
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.getByRole('button', { name: 'Pause mail' }).click();
      await page.getByRole('button', { name: 'Resume mail' }).waitFor();
      await page.context().clearCookies();
      await page.getByRole('button', { name: 'Resume mail' }).click();

      await page.getByLabel('Admin token').waitFor();
    });

    test('a read-only session offers no changes', { timeout: TIMEOUT }, async () => {
      const { ui } = await setup(dialect, { token: TOKEN, readOnlyToken: 'only-look' });
      const page = await browser.open(`${ui}/queues#token=only-look`);

      await page.getByText('Read-only').waitFor();
      await page.getByRole('link', { name: 'mail', exact: true }).waitFor();
      expect(await page.getByRole('button', { name: 'Pause mail' }).count()).toBe(0);
      expect(page.url()).not.toContain('only-look');
    });

    test('queues are paused, resumed and limited', { timeout: TIMEOUT }, async () => {
      const { ui, call } = await setup(dialect);
      const page = await browser.open(`${ui}/queues?queue=mail`);

      await page.getByRole('button', { name: 'Pause mail' }).click();
      await page.getByText('paused', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Resume mail' }).click();
      await page.getByLabel('Running at once, in all processes').fill('3');
      await page.getByRole('button', { name: 'Save limits' }).click();
      await page.getByText('Saved.').waitFor();

      const { body } = await call('GET', '/api/v1/queues/mail');
      expect(body).toMatchObject({ isPaused: false, globalConcurrency: 3 });
    });

    test('schedules are created, triggered, paused, edited, backfilled and deleted', { timeout: TIMEOUT }, async () => {
      const { DBOS, ui, call } = await setup(dialect);
      const page = await browser.open(`${ui}/schedules`);
      const act = (name: string): Promise<void> => choose(page, name, 'Actions on hourly');

      await page.getByRole('button', { name: 'New schedule…' }).click();
      await page.getByLabel('Name', { exact: true }).fill('hourly');
      await page.getByLabel('Workflow', { exact: true }).fill('greet');
      await page.getByLabel('Cron expression').fill('0 * * * *');
      await confirm(page, 'Create');
      await act('Trigger now');
      await page.locator('.outcomes a').first().waitFor();
      await act('Pause');
      await page.getByText('paused', { exact: true }).waitFor();
      await act('Edit…');
      await page.getByLabel('Cron expression').fill('30 * * * *');
      await page.getByLabel('Time zone').fill('Europe/Berlin');
      await page.getByLabel('If the previous run has not ended').selectOption('skip');
      await confirm(page, 'Save');
      await page.getByText('30 * * * *').waitFor();
      await act('Backfill…');
      await page.getByText(/2[345] occurrences/).waitFor();
      await page.getByLabel('After').fill('2026-01-05T10:00:00');
      await page.getByLabel('Before').fill('2026-01-05T13:00:00');
      await page.getByText('3 occurrences').waitFor();
      const edited = await call('GET', '/api/v1/schedules/hourly');
      await confirm(page, 'Start 3');
      await page.locator('.outcomes a').nth(3).waitFor();
      const started = await DBOS.listWorkflows({ scheduleName: 'hourly' });
      await act('Delete…');
      await confirm(page, 'Delete');
      await page.getByText('There is no schedule yet.').waitFor();

      expect(edited.body).toMatchObject({ schedule: '30 * * * *', cronTimezone: 'Europe/Berlin', overlap: 'skip' });
      expect(started).toHaveLength(4);
      expect((await call('GET', '/api/v1/schedules')).body).toEqual({ schedules: [] });
    });
  });
});
