// The part of the API that the figures about messages need. Everstep and DBOS have it, so the same code runs on both.
import type { Library } from '../engine/library.js';

export interface MessagingLibrary extends Library {
  startWorkflow<Args extends unknown[], Return>(
    target: (...args: Args) => Promise<Return>,
    params?: { workflowID?: string },
  ): (...args: Args) => Promise<{ getResult(): Promise<Return> }>;
  runStep<Return>(func: () => Promise<Return>, config: { name: string }): Promise<Return>;
  send(destinationID: string, message: unknown, topic?: string): Promise<void>;
  recv(topic?: string, timeoutSeconds?: number): Promise<unknown>;
  setEvent(key: string, value: unknown): Promise<void>;
  getEvent(workflowID: string, key: string, timeoutSeconds?: number): Promise<unknown>;
  writeStream(key: string, value: unknown): Promise<void>;
  closeStream(key: string): Promise<void>;
  readStream(workflowID: string, key: string): AsyncGenerator<unknown>;
}
