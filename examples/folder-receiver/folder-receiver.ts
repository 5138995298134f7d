import { access, readdir, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Adapter, type ConsumerOptions, Receiver, type ReceiverSettings } from '../../src/receiver.js';

interface FolderMessage {
  readonly folder: string;
  readonly name: string;
  readonly text: string;
}

interface FolderOptions extends ConsumerOptions<FolderMessage> {
  readonly folder: string;
}

const adapter: Adapter<FolderMessage, FolderOptions> = {
  name: 'folder',
  describe: ({ folder }) => `folder "${folder}"`,
  // Stable across deliveries: a file found twice starts one workflow.
  workflowIDOf: ({ folder, name }) => `folder-${folder}-${name}`,
  decode: ({ text }) => [JSON.parse(text) as unknown],
  async connect({ folder }) {
    // Fails the launch if the folder does not exist.
    await access(folder);
    return {
      async fetch(max, signal) {
        const names = (await readdir(folder)).sort().slice(0, max);
        if (names.length === 0) await pause(100, undefined, { signal });
        return Promise.all(
          names.map(async (name) => ({ folder, name, text: await readFile(join(folder, name), 'utf8') })),
        );
      },
      // The workflows are committed, so the files are no longer needed.
      async acknowledge(messages) {
        for (const { name } of messages) await unlink(join(folder, name));
      },
      async close() {},
    };
  },
};

export class FolderReceiver extends Receiver<FolderMessage, FolderOptions> {
  constructor(settings?: ReceiverSettings) {
    super(adapter, settings);
  }
}
