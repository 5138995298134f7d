// Takes the screenshots of the documentation, of a small shop:
//
//   npm run build && npx tsx dashboard/scripts/screenshots.mjs
import { writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';
import { openShop } from './shop.mjs';
import { ENVIRONMENT_FILE, environmentOf, pictureFile, SHOTS, takeShots, VIEWPORT } from './shots.mjs';

const shop = await openShop();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
try {
  const page = await browser.newPage({ viewport: VIEWPORT });
  const { browser: version, widths } = await environmentOf(page);
  // As Prettier writes it.
  writeFileSync(ENVIRONMENT_FILE, `{ "browser": "${version}", "widths": [${widths.join(', ')}] }\n`);
  for (const shot of SHOTS) {
    const { light, dark } = await takeShots(page, shop.url, shot);
    writeFileSync(pictureFile(shot.name, 'light'), light);
    writeFileSync(pictureFile(shot.name, 'dark'), dark);
  }
} finally {
  await browser.close();
  await shop.close();
}
