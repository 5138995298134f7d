// The admin HTTP server that an engine may start at launch.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../../kernel/base/clock.js';
import type { DLogger } from '../../../kernel/base/log.js';
import type { Admin } from '../admin.js';

export interface AdminServerOptions {
  readonly host: string;
  readonly port: number;
  readonly logger: DLogger;
  readonly clock: Clock;
}

/** How long shutdown waits for requests in flight. */
const GRACE_MS = 1000;

export class AdminServer {
  readonly http: Server;
  readonly #admin: Admin;
  readonly #clock: Clock;
  #inFlight = 0;
  #isClosing = false;

  private constructor(admin: Admin, { logger, clock }: AdminServerOptions) {
    this.#admin = admin;
    this.#clock = clock;
    this.http = createServer((request, response) => {
      this.#inFlight += 1;
      response.once('close', () => this.#onResponded());
      admin.handle(request, response).catch((error: unknown) => {
        logger.error(error);
        response.destroy();
      });
    });
  }

  /** Undefined if the port cannot be bound: the application must start even without its admin server. */
  static async start(admin: Admin, options: AdminServerOptions): Promise<AdminServer | undefined> {
    const { host, port, logger } = options;
    const server = new AdminServer(admin, options);
    const { http } = server;
    try {
      await listen(http, host, port);
    } catch (error) {
      logger.warn(
        `The admin server cannot listen on ${host}:${port}: ${(error as Error).message}. Set another adminPort.`,
      );
      return undefined;
    }
    http.on('error', (error) => logger.error(error));
    const { port: actualPort } = http.address() as AddressInfo;
    logger.info(`Admin server listening on http://${host.includes(':') ? `[${host}]` : host}:${actualPort}`);
    return server;
  }

  /** Ends all streams, waits briefly for other requests, and closes all connections. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#admin.close();
    const closed = new Promise<void>((resolve) => this.http.close(() => resolve()));
    if (this.#inFlight === 0) this.http.closeAllConnections();
    const timer = this.#clock.after(GRACE_MS, () => this.http.closeAllConnections());
    await closed;
    timer.cancel();
  }

  #onResponded(): void {
    this.#inFlight -= 1;
    if (this.#isClosing && this.#inFlight === 0) this.http.closeAllConnections();
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
