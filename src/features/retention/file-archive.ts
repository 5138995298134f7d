// An archive in a folder.
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { newID } from '../../kernel/base/ids.js';
import { filledString } from '../../kernel/check/validation.js';
import type { Archive } from './archive-target.js';

/** Names of objects begin and end with these. */
const OBJECTS = 'workflows';
const OBJECT_SUFFIX = '.ndjson.gz';

/** Keeps archived workflows as files in a folder, which is created when needed. */
export function fileArchive(folder: string): Archive {
  filledString.read(folder, 'folder');
  return {
    async write(name, content) {
      const path = join(folder, name);
      await mkdir(dirname(path), { recursive: true });
      // Under another name first: a crash must not leave half a file.
      const temporary = `${path}.${newID()}`;
      try {
        const file = await open(temporary, 'wx', 0o600);
        try {
          await file.writeFile(content);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
      await syncFolder(dirname(path));
    },
    async read(name) {
      try {
        return await readFile(join(folder, name));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
  };
}

/** The names of all objects in the folder of an archive. */
export async function listFileArchive(folder: string): Promise<string[]> {
  const paths = await readdir(join(folder, OBJECTS), { recursive: true });
  return paths.filter((path) => path.endsWith(OBJECT_SUFFIX)).map((path) => [OBJECTS, ...path.split(sep)].join('/'));
}

/** The new name is durable only with its folder. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
