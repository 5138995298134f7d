// `everstep dashboard`: serves the dashboard of a system database on this machine, until it is interrupted.
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { command, type CommandContext } from '../command.js';
import { APPLICATION, DATABASE, loggerOf, withClient } from '../connection.js';
import { CommandFailure } from '../failure.js';
import { flag, wholeNumber } from '../option.js';
import { paint, sanitize } from '../render-context.js';
import { openBrowser } from './open-browser.js';

const HOST = '127.0.0.1';

const dashboardCommand = command({
  name: 'dashboard',
  about: 'Open the dashboard of a system database in the browser',
  details:
    'Serves it on 127.0.0.1 until you press Ctrl-C. The link logs one browser in, once; the session lasts 12 hours. It is ' +
    'read-only unless you pass --allow-changes. To serve it to others, mount it into your application.',
  options: {
    port: wholeNumber('Port; defaults to any free one', { short: 'p', placeholder: 'PORT' }),
    allowChanges: flag('Allow changes, such as cancelling workflows'),
    noOpen: flag('Print the link without opening the browser'),
    ...APPLICATION,
    ...DATABASE,
  },
  examples: [
    ['everstep dashboard', 'look around'],
    ['everstep dashboard --allow-changes --port 8080', 'and cancel, resume or fork workflows'],
    ['everstep dashboard -s sqlite:///shop.sqlite --no-open', 'another database; open the link yourself'],
  ],
  run: (context, { options }) =>
    withClient(context, options, async (_, target, client) => {
      // Loaded when used: other commands do not need it.
      const [{ adminOf }, { AdminServer }] = await Promise.all([
        import('../../http/admin.js'),
        import('../../http/http/server.js'),
      ]);
      const token = randomBytes(24).toString('base64url');
      const isReadOnly = !options.allowChanges;
      const admin = adminOf({ source: client, token, isOneTime: true, isOpen: false, isReadOnly, basePath: '' });
      const port = options.port ?? 0;
      const listening = {
        host: HOST,
        port,
        clock: context.clock,
        logger: { ...loggerOf(context), warn: () => {} },
      };
      const server = await AdminServer.start(admin, listening);
      if (!server) throw new CommandFailure(`Cannot listen on port ${port}: it is in use. Pass another --port.`);
      try {
        const link = `http://${HOST}:${(server.http.address() as AddressInfo).port}/ui/#token=${token}`;
        await announce(context, { link, database: target.shown, isReadOnly });
        if (!options.noOpen && context.terminal.isInteractive) openBrowser(link, context);
        if (!context.signal.aborted) await once(context.signal, 'abort');
      } finally {
        await server.close();
      }
    }),
});

interface Served {
  readonly link: string;
  readonly database: string;
  readonly isReadOnly: boolean;
}

async function announce({ terminal }: CommandContext, { link, database, isReadOnly }: Served): Promise<void> {
  const mode = isReadOnly ? 'read-only; pass --allow-changes to change anything' : 'changes are allowed';
  await terminal.print(
    `${paint(terminal, 'bold', 'Dashboard')} of ${sanitize(database)} (${mode}):\n\n  ${link}\n\n` +
      'The link works once. Press Ctrl-C to stop.\n',
  );
}

export const DASHBOARD_COMMANDS = [dashboardCommand];
