// The pictures in the docs show the pages as they are. They are compared coarsely, and only by the browser with the fonts
// that they were taken with.
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { openShop } from '../../dashboard/scripts/shop.mjs';
import {
  ENVIRONMENT_FILE,
  environmentOf,
  pictureFile,
  shareOfDifference,
  SHOTS,
  takeShots,
  VIEWPORT,
} from '../../dashboard/scripts/shots.mjs';
import { withBrowser } from '../rig/browser.js';
import { onlyOn } from '../rig/dialects.js';
import { TIMEOUT } from './scene.js';

/** Of a picture. A time of another length makes up far less, a missing panel far more. */
const TOLERANCE = 0.04;

const SCHEMES = ['light', 'dark'] as const;

function pictureOf(name: string, colorScheme: (typeof SCHEMES)[number]): Buffer {
  return readFileSync(pictureFile(name, colorScheme));
}

withBrowser((browser) => {
  onlyOn('sqlite', () => {
    test('the pages look as in the docs', { timeout: 2 * TIMEOUT }, async ({ skip }) => {
      const blank = await browser.open('about:blank');
      const taken: unknown = JSON.parse(readFileSync(ENVIRONMENT_FILE, 'utf8'));
      const present = await environmentOf(blank);
      if (JSON.stringify(present) !== JSON.stringify(taken)) {
        skip(`The pictures were taken with another browser or other fonts: ${JSON.stringify({ taken, present })}`);
      }
      const shop = await openShop();
      onTestFinished(() => shop.close());
      const page = await browser.open('about:blank', { viewport: VIEWPORT });

      const different: string[] = [];
      for (const shot of SHOTS) {
        const shots = await takeShots(page, shop.url, shot);
        for (const scheme of SCHEMES) {
          const pictures = [shots[scheme], pictureOf(shot.name, scheme)] as const;
          const share = await shareOfDifference(blank, pictures, shots.unsteady);
          if (share > TOLERANCE) different.push(`${shot.name} in ${scheme}: ${share.toFixed(3)}`);
        }
      }

      expect(different, 'if this is wanted, run npx tsx dashboard/scripts/screenshots.mjs').toEqual([]);
    });

    test('pictures of other pages and colours are told apart', { timeout: TIMEOUT }, async () => {
      const blank = await browser.open('about:blank');
      const queues = pictureOf('dashboard-queues', 'light');
      const compare = (other: Buffer): Promise<number> => shareOfDifference(blank, [queues, other]);

      expect(await compare(queues)).toBe(0);
      expect(await compare(pictureOf('dashboard-queues', 'dark'))).toBeGreaterThan(0.9);
      expect(await compare(pictureOf('dashboard-workflows', 'light'))).toBeGreaterThan(TOLERANCE);
    });
  });
});
