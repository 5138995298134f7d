// Opens a link in the user's browser.
import { spawn } from 'node:child_process';
import type { CommandContext } from '../command.js';

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>>> = {
  darwin: ['open'],
  // `start` takes its first quoted argument for a title.
  win32: ['cmd', '/c', 'start', '""'],
};

/** Does nothing where there is no browser: the link has been printed. */
export function openBrowser(link: string, { environment, terminal }: CommandContext): void {
  const [program, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...args, link], { env: environment, stdio: 'ignore', detached: true });
  child.once('error', () => terminal.printStderr('No browser was found. Open the link yourself.\n'));
  child.unref();
}
