// The dashboard in a real browser: Debian's Chromium, driven by Playwright. Tests are skipped where it is missing.
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, onTestFinished } from 'vitest';
import type { Admin } from '../../src/faces/http/admin.js';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
const BUILT = fileURLToPath(new URL('../../dist/dashboard/index.html', import.meta.url));
/** How long to wait for what the page should show. Only a test that fails waits for so long. */
const PATIENCE_MS = 45_000;

export interface TestBrowser {
  /** A page with cookies of its own, closed when the test ends. What it logs as an error fails the test. */
  open(url: string, options?: BrowserContextOptions): Promise<Page>;
}

/** Tests that need a browser and the built dashboard. */
export function withBrowser(body: (browser: TestBrowser) => void): void {
  const missing = CHROMIUM === undefined ? 'Chromium is missing' : existsSync(BUILT) ? '' : 'run npm run build first';
  if (missing !== '') console.log(`Browser tests are skipped: ${missing}.`);
  describe.skipIf(missing !== '')('in a browser', () => {
    let browser: Browser | undefined;
    beforeAll(async () => {
      const args = ['--no-sandbox', '--disable-dev-shm-usage'];
      browser = await chromium.launch({ executablePath: CHROMIUM, args, timeout: PATIENCE_MS });
    });
    afterAll(() => browser?.close());
    body({
      async open(url, options) {
        const context = await browser!.newContext({ viewport: { width: 1280, height: 800 }, ...options });
        onTestFinished(() => context.close());
        context.setDefaultTimeout(PATIENCE_MS);
        const page = await context.newPage();
        await page.goto(url);
        return page;
      },
    });
  });
}

/** What a page throws, or would have done without the content security policy. */
export function watchErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (/Content Security Policy|Minified React error/.test(message.text())) errors.push(message.text());
  });
  return errors;
}

/** The rules of WCAG that the page breaks, with the elements that do. */
export async function accessibilityProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate(
    'axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then(({ violations }) =>' +
      ' violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`)))',
  );
  return found as string[];
}

export interface TestServer {
  readonly url: string;
  /** Drops all connections and refuses new ones until `reopen`. */
  cut(): void;
  reopen(): void;
}

/** Serves the interface on a port of its own until the test ends. */
export async function serveAdmin(admin: Admin): Promise<TestServer> {
  let isCut = false;
  const server = createServer((request, response) => void admin.handle(request, response));
  // The port stays taken while it is cut: another process could get it.
  server.on('connection', (socket) => isCut && socket.destroy());
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(async () => {
    admin.close();
    await new Promise<void>((done) => {
      server.close(() => done());
      server.closeAllConnections();
    });
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut() {
      isCut = true;
      server.closeAllConnections();
    },
    reopen() {
      isCut = false;
    },
  };
}
