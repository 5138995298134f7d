// A background loop that can be started and stopped. Starting twice, stopping twice and stopping unstarted are safe.
//
//   idle ──start──► running ──stop──► stopping ──loop ends──► idle

export type LoopBody = (signal: AbortSignal) => Promise<void>;

export class Service {
  readonly #body: LoopBody;
  #controller: AbortController | undefined;
  #done: Promise<void> = Promise.resolve();

  /**
   * `body` runs until its signal aborts, and must settle soon after. Rejecting with the signal's reason is a normal end;
   * any other rejection goes to `onFailure`.
   */
  constructor(
    body: LoopBody,
    readonly onFailure: (error: unknown) => void,
  ) {
    this.#body = body;
  }

  get isRunning(): boolean {
    return this.#controller !== undefined;
  }

  start(): void {
    if (this.#controller) return;
    const controller = new AbortController();
    this.#controller = controller;
    this.#done = this.#done.then(async () => {
      try {
        await this.#body(controller.signal);
      } catch (error) {
        if (!(controller.signal.aborted && error === controller.signal.reason)) this.onFailure(error);
      } finally {
        if (this.#controller === controller) this.#controller = undefined;
      }
    });
  }

  /** Aborts the loop and resolves when it has ended. */
  async stop(): Promise<void> {
    this.#controller?.abort();
    this.#controller = undefined;
    await this.#done;
  }
}
