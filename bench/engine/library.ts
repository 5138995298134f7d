// The part of the API that the workload needs. Everstep and both generations of DBOS have it, so the same code runs on
// all three.
export interface Library {
  setConfig(config: LibraryConfig): void;
  launch(): Promise<void>;
  shutdown(): Promise<void>;
  registerWorkflow<Args extends unknown[], Return>(
    func: (...args: Args) => Promise<Return>,
    config: { name: string },
  ): (...args: Args) => Promise<Return>;
  registerStep<Args extends unknown[], Return>(
    func: (...args: Args) => Promise<Return>,
    config: { name: string },
  ): (...args: Args) => Promise<Return>;
  startWorkflow<Args extends unknown[], Return>(
    target: (...args: Args) => Promise<Return>,
  ): (...args: Args) => Promise<unknown>;
  sleep(durationMs: number): Promise<void>;
}

interface LibraryConfig {
  name: string;
  systemDatabaseUrl: string;
  applicationVersion: string;
  logLevel: 'error';
  executorID?: string;
}
