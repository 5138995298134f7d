// The archive of deleted workflows: objects of compressed JSON lines, in the format of exports, each written and read back
// before its workflows are deleted.
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { ArchiveError } from '../../kernel/errors/errors.js';
import { findArchived, findNotedElsewhere, moveNotes } from './archive-index.sql.js';
import { readEnded, type Transferred } from '../transfer/transfer.sql.js';
import type { Operator } from '../../operator/operator.js';
import type { Archive } from './archive-target.js';
import { type ExportedWorkflow, toExported } from '../transfer/export-format.js';
import { Pace, PieceSize } from './paced-walk.js';

/** Loaded when it is used: most programs have no archive. */
async function compress(text: string): Promise<Buffer> {
  const { gzip } = await import('node:zlib');
  return promisify(gzip)(text);
}

async function decompress(bytes: Uint8Array): Promise<Buffer> {
  const { gunzip } = await import('node:zlib');
  return promisify(gunzip)(bytes);
}

/** Workflows read at once. They may be large. */
const READ_MAX = 100;
/** Characters after which an object is complete, whatever else is due. */
const OBJECT_CHARACTERS = 8_000_000;

/** Notes of archived workflows that a repair looks at in one statement. */
const REPAIRED_MAX = 500;

/** An object in the archive, and the workflows whose copies it holds. */
export interface ArchivedObject<T> {
  readonly name: string;
  readonly workflows: readonly T[];
}

/**
 * Archives workflows that have ended as one object, or several if they are large. Each is verified when it is returned. What
 * another process has deleted meanwhile is in none.
 */
export async function* archiveWorkflows<T extends { readonly workflowID: string }>(
  { database }: Operator,
  { archive, pace, workflows }: { readonly archive: Archive; readonly pace: Pace; readonly workflows: readonly T[] },
): AsyncGenerator<ArchivedObject<T>> {
  const size = new PieceSize(READ_MAX);
  let draft = new Draft<T>();
  for (let read = 0; read < workflows.length;) {
    const piece = new Map(workflows.slice(read, read + size.limit).map((workflow) => [workflow.workflowID, workflow]));
    const lines = await pace.work(size, async () => (await readEnded(database, [...piece.keys()])).map(lineOf));
    read += piece.size;
    for (const line of lines) draft.add(line, piece.get(line.workflowID) as T);
    if (draft.workflows.length === 0 || (read < workflows.length && draft.characters < OBJECT_CHARACTERS)) continue;
    yield { name: await store(archive, draft, pace), workflows: draft.workflows };
    draft = new Draft();
  }
}

/** A workflow as an object holds it. */
interface Line {
  readonly workflowID: string;
  readonly text: string;
  readonly endedAt: number;
}

function lineOf(transferred: Transferred): Line {
  const { workflowID, completedAt, updatedAt } = transferred.workflow_status;
  return { workflowID, text: `${JSON.stringify(toExported(transferred))}\n`, endedAt: completedAt ?? updatedAt };
}

/** What an object will hold. */
class Draft<T> {
  readonly workflows: T[] = [];
  readonly #lines: string[] = [];
  #endedAt = 0;
  characters = 0;

  add({ text, endedAt }: Line, workflow: T): void {
    this.workflows.push(workflow);
    this.#lines.push(text);
    this.#endedAt = Math.max(this.#endedAt, endedAt);
    this.characters += text.length;
  }

  /** The name depends on the content only, so a second attempt writes the same object. */
  async pack(): Promise<{ readonly name: string; readonly text: string; readonly content: Buffer }> {
    const text = this.#lines.join('');
    return { name: nameOf(text, this.#endedAt), text, content: await compress(text) };
  }
}

/** Writes an object, verifies it, and returns its name. Waiting for the archive is no load, packing is. */
async function store(archive: Archive, draft: Draft<unknown>, pace: Pace): Promise<string> {
  const { name, text, content } = await pace.load(() => draft.pack());
  await attempt(`write "${name}"`, () => archive.write(name, content));
  const written = await attempt(`read "${name}"`, () => archive.read(name));
  // An archive may have kept what another version compressed.
  const isSame = written && (content.equals(written) || (await unpack(name, written)) === text);
  if (!isSame) {
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
  return content === undefined ? undefined : unpack(name, content);
}

async function unpack(name: string, content: Uint8Array): Promise<string> {
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

/** What a repair has found so far. */
export interface ArchiveRepaired {
  readonly objects: number;
  /** Workflows that can be found again. */
  readonly workflows: number;
}

/** Looks for workflows whose note names an object that lacks them, in all objects, and notes the one that has them. */
export async function repairArchiveIndex(
  operator: Operator,
  { archive, names }: { readonly archive: Archive; readonly names: readonly string[] },
  onProgress: (repaired: ArchiveRepaired) => void,
): Promise<ArchiveRepaired> {
  const { database } = operator;
  const pace = new Pace(operator, { restFactor: 1 });
  const size = new PieceSize(REPAIRED_MAX);
  const idsIn = async (name: string): Promise<string[]> => {
    const lines = ((await readObject(archive, name)) ?? '').split('\n').filter((line) => line !== '');
    return lines.map((line) => (JSON.parse(line) as ExportedWorkflow).workflow_status.workflow_uuid as string);
  };
  let repaired: ArchiveRepaired = { objects: 0, workflows: 0 };
  for (const to of names) {
    const held = await idsIn(to);
    for (let first = 0; first < held.length;) {
      const piece = held.slice(first, first + size.limit);
      first += piece.length;
      for (const [from, ids] of await pace.work(size, () => findNotedElsewhere(database, piece, to))) {
        const noted = new Set(await idsIn(from));
        const lost = ids.filter((id) => !noted.has(id));
        if (lost.length === 0) continue;
        const moved = await pace.work(size, () => moveNotes(database, lost, { from, to }));
        repaired = { ...repaired, workflows: repaired.workflows + moved };
      }
    }
    repaired = { ...repaired, objects: repaired.objects + 1 };
    onProgress(repaired);
  }
  return repaired;
}
