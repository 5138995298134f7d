// Takes the screenshots of the documentation, of a small shop:
//
//   npm run build && npx tsx dashboard/scripts/screenshots.mjs
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { openShop } from './shop.mjs';

const FOLDER = fileURLToPath(new URL('../../docs/images', import.meta.url));
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

const SHOTS = [
  { name: 'dashboard-workflows', path: '/workflows', sign: 'order-17' },
  { name: 'dashboard-workflow', path: '/workflows/order-17?row=1', sign: 'Fork from here' },
  { name: 'dashboard-workflow-dark', path: '/workflows/order-17?row=1', sign: 'Fork from here', colorScheme: 'dark' },
];

mkdirSync(FOLDER, { recursive: true });
const shop = await openShop();
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
try {
  for (const { name, path, sign, colorScheme = 'light' } of SHOTS) {
    const context = await browser.newContext({ viewport: { width: 1120, height: 660 }, colorScheme });
    const page = await context.newPage();
    await page.goto(`${shop.url}/ui${path}`);
    await page.getByText(sign).first().waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    // The order of the shop has come to its approval.
    if (path.includes('order-17')) await page.getByRole('button', { name: 'wait', exact: true }).waitFor();
    await page.screenshot({ path: `${FOLDER}/${name}.png`, animations: 'disabled' });
    await context.close();
  }
} finally {
  await browser.close();
  await shop.close();
}
