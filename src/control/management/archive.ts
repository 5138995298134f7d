// The archive of deleted workflows: objects of compressed JSON lines, in the format of exports, each written and read back
// before its workflows are deleted.
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { ArchiveError } from '../../model/errors/errors.js';
import { findArchived } from '../../store/management/archive-index.js';
import { readTransferred } from '../../store/management/transfer.js';
import type { Operator } from '../operator.js';
import type { Archive } from './archive-target.js';
import { type ExportedWorkflow, toExported } from './export-format.js';

/** Loaded when it is used: most programs have no archive. */
async function compress(text: string): Promise<Buffer> {
  const { gzip } = await import('node:zlib');
  return promisify(gzip)(text);
}

async function decompress(bytes: Uint8Array): Promise<Buffer> {
  const { gunzip } = await import('node:zlib');
  return promisify(gunzip)(bytes);
}
/** Workflows read at once. */
const BATCH = 50;

/**
 * Archives workflows as one object, verifies it, and returns its name. The name depends on the content only, so a second
 * attempt writes the same object.
 */
export async function archiveWorkflows(
  { database }: Operator,
  archive: Archive,
  workflowIDs: readonly string[],
): Promise<string> {
  const lines: string[] = [];
  let endedAt = 0;
  for (let from = 0; from < workflowIDs.length; from += BATCH) {
    for (const one of await readTransferred(database, workflowIDs.slice(from, from + BATCH))) {
      const { completedAt, updatedAt } = one.workflow_status;
      endedAt = Math.max(endedAt, completedAt ?? updatedAt);
      lines.push(`${JSON.stringify(toExported(one))}\n`);
    }
  }
  const text = lines.join('');
  const name = nameOf(text, endedAt);
  await attempt(`write "${name}"`, async () => archive.write(name, await compress(text)));
  if ((await readObject(archive, name)) !== text) {
    throw new ArchiveError(`The archive holds something else under "${name}" than was written. Nothing was deleted.`);
  }
  return name;
}

/** By the day on which the last of them ended. */
function nameOf(text: string, endedAt: number): string {
  const day = new Date(endedAt).toISOString().slice(0, 10).replaceAll('-', '/');
  return `workflows/${day}/${createHash('sha256').update(text).digest('hex').slice(0, 32)}.ndjson.gz`;
}

async function readObject(archive: Archive, name: string): Promise<string | undefined> {
  const content = await attempt(`read "${name}"`, () => archive.read(name));
  if (content === undefined) return undefined;
  try {
    return (await decompress(content)).toString('utf8');
  } catch (cause) {
    throw new ArchiveError(`"${name}" in the archive is damaged: ${String(cause)}`, { cause });
  }
}

async function attempt<T>(what: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new ArchiveError(`The archive could not ${what}: ${reason}`, { cause });
  }
}

/** An archived workflow in the format of exports; undefined if it is not archived. Restore it with an import. */
export async function getArchivedWorkflow(
  operator: Operator,
  workflowID: string,
  archive = operator.archive,
): Promise<ExportedWorkflow | undefined> {
  const { database } = operator;
  if (!archive) {
    throw new ArchiveError('No archive is configured. Set archive, such as fileArchive(folder), in the configuration.');
  }
  const name = await operator.retrying(() => findArchived(database, workflowID));
  if (name === undefined) return undefined;
  const text = await readObject(archive, name);
  if (text === undefined) {
    throw new ArchiveError(`Workflow "${workflowID}" is in "${name}", which the configured archive does not hold.`);
  }
  for (const line of text.split('\n')) {
    if (!line.includes(JSON.stringify(workflowID))) continue;
    const exported = JSON.parse(line) as ExportedWorkflow;
    if (exported.workflow_status.workflow_uuid === workflowID) return exported;
  }
  throw new ArchiveError(`Workflow "${workflowID}" is missing from "${name}" in the archive.`);
}
