// The pictures of the dashboard in the documentation: what each shows, how it is taken, and how two are compared.
import { fileURLToPath } from 'node:url';

export const SHOTS = [
  { name: 'dashboard-overview', path: '/', sign: 'Needs attention' },
  { name: 'dashboard-workflows', path: '/workflows', sign: 'order-17' },
  { name: 'dashboard-workflow', path: '/workflows/order-17?row=1', sign: 'Fork from here' },
  { name: 'dashboard-queues', path: '/queues?queue=tenants', sign: 'Save limits' },
];
export const VIEWPORT = { width: 1120, height: 660 };

const FOLDER = new URL('../../docs/images/', import.meta.url);
/** The browser and the fonts that the pictures were taken with. */
export const ENVIRONMENT_FILE = fileURLToPath(new URL('dashboard.json', FOLDER));

export function pictureFile(name, colorScheme) {
  return fileURLToPath(new URL(`${name}${colorScheme === 'dark' ? '-dark' : ''}.png`, FOLDER));
}

/** What depends on how long things took. */
const UNSTEADY = '.charts, .facts, .timeline, .why';

/** Takes a picture of a page of the shop in light and in dark. */
export async function takeShots(page, url, { path, sign }) {
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.goto(`${url}/ui${path}`);
  await page.getByText(sign).first().waitFor();
  await page.getByText('live', { exact: true }).waitFor();
  if (path === '/') await page.locator('canvas').nth(3).waitFor();
  const light = await page.screenshot({ animations: 'disabled' });
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await page.screenshot({ animations: 'disabled' });
  const boxes = await Promise.all((await page.locator(UNSTEADY).all()).map((box) => box.boundingBox()));
  return { light, dark, unsteady: boxes.filter((box) => box !== null) };
}

/** The version of the browser, and how wide it draws a text in the fonts of the pages. */
export async function environmentOf(page) {
  const widths = await page.evaluate(() =>
    ['system-ui', 'ui-monospace, monospace'].map((family) => {
      const context = document.createElement('canvas').getContext('2d');
      context.font = `100px ${family}`;
      return Math.round(context.measureText('order-17 ● ◷ ✓ ✕ waits for approval').width);
    }),
  );
  return { browser: page.context().browser().version(), widths };
}

/** The edge of a cell, in pixels: small enough for a missing button, too large for a time of another length. */
const CELL = 14;
/** By how much the mean of a channel must differ. */
const THRESHOLD = 32;

/**
 * The share of cells in which two pictures differ, outside of some boxes; 1 if their sizes differ. The page decodes them,
 * and must be an empty one.
 */
export async function shareOfDifference(page, [first, second], ignored = []) {
  const [one, other] = [await meansOf(page, first), await meansOf(page, second)];
  if (one.columns !== other.columns || one.cells.length !== other.cells.length) return 1;
  const isIgnored = (index) => {
    const [left, top] = [(index % one.columns) * CELL, Math.floor(index / one.columns) * CELL];
    return ignored.some(
      ({ x, y, width, height }) => left + CELL > x && left < x + width && top + CELL > y && top < y + height,
    );
  };
  const different = one.cells.filter(
    (cell, index) =>
      !isIgnored(index) && cell.some((value, channel) => Math.abs(value - other.cells[index][channel]) > THRESHOLD),
  );
  return different.length / one.cells.length;
}

/** The mean colours of the cells of a picture, row by row. */
function meansOf(page, png) {
  return page.evaluate(
    async ({ source, edge }) => {
      const image = new Image();
      image.src = source;
      await image.decode();
      const canvas = document.createElement('canvas');
      canvas.width = image.width;
      canvas.height = image.height;
      const context = canvas.getContext('2d', { willReadFrequently: true });
      context.drawImage(image, 0, 0);
      const { data, width } = context.getImageData(0, 0, image.width, image.height);
      const columns = Math.floor(width / edge);
      const rows = Math.floor(image.height / edge);
      const cells = Array.from({ length: columns * rows }, () => [0, 0, 0]);
      for (let y = 0; y < rows * edge; y += 1) {
        for (let x = 0; x < columns * edge; x += 1) {
          const cell = cells[Math.floor(y / edge) * columns + Math.floor(x / edge)];
          for (let channel = 0; channel < 3; channel += 1) {
            cell[channel] += data[(y * width + x) * 4 + channel] / (edge * edge);
          }
        }
      }
      return { columns, cells };
    },
    { source: `data:image/png;base64,${png.toString('base64')}`, edge: CELL },
  );
}
