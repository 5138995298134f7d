// The HTTP server that an engine starts at launch, if wanted.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import type { Admin } from '../admin.js';

export interface AdminServerOptions {
  readonly host: string;
  readonly port: number;
  readonly logger: DLogger;
  readonly clock: Clock;
}

/** How long a shutdown waits for answers under way. */
const GRACE_MS = 1000;

export class AdminServer {
  readonly http: Server;
  readonly #admin: Admin;
  readonly #clock: Clock;
  #underWay = 0;
  #isClosing = false;

  private constructor(admin: Admin, { logger, clock }: AdminServerOptions) {
    this.#admin = admin;
    this.#clock = clock;
    this.http = createServer((request, response) => {
      this.#underWay += 1;
      response.once('close', () => this.#onAnswered());
      admin.handle(request, response).catch((error: unknown) => {
        logger.error(error);
        response.destroy();
      });
    });
  }

  /** Undefined if the port is in use, or not allowed: the application is more important than its inspection. */
  static async start(admin: Admin, options: AdminServerOptions): Promise<AdminServer | undefined> {
    const { host, port, logger } = options;
    const server = new AdminServer(admin, options);
    const { http } = server;
    try {
      await listen(http, host, port);
    } catch (error) {
      logger.warn(`The admin server cannot listen on ${host}:${port}: ${(error as Error).message}. Set adminPort.`);
      return undefined;
    }
    http.on('error', (error) => logger.error(error));
    const { port: actualPort } = http.address() as AddressInfo;
    logger.info(`Admin server listening on http://${host.includes(':') ? `[${host}]` : host}:${actualPort}`);
    return server;
  }

  /** Ends all streams, waits a moment for other answers, and closes all connections. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#admin.close();
    const closed = new Promise<void>((resolve) => this.http.close(() => resolve()));
    if (this.#underWay === 0) this.http.closeAllConnections();
    const timer = this.#clock.after(GRACE_MS, () => this.http.closeAllConnections());
    await closed;
    timer.cancel();
  }

  #onAnswered(): void {
    this.#underWay -= 1;
    if (this.#isClosing && this.#underWay === 0) this.http.closeAllConnections();
  }
}

function listen(http: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once('error', reject);
    http.listen(port, host, () => {
      http.off('error', reject);
      resolve();
    });
  });
}
