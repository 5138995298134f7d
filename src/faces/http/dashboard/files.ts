// The built dashboard, from `dist/dashboard/` of this package. Its files are read once, at the first request, and only
// what was found then is served, so a path in a URL never becomes a path on the disk.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

export interface DashboardFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** Undefined for files that are compressed already. */
  readonly gzipped: Buffer | undefined;
  readonly etag: string;
}

const INDEX = 'index.html';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
};
const COMPRESSED = new Set(['.png', '.woff2']);

export class DashboardFiles {
  readonly #folder: string | undefined;
  #files: ReadonlyMap<string, DashboardFile> | undefined;

  /** By default the folder in this package. */
  constructor(folder = builtFolder()) {
    this.#folder = folder;
  }

  /** A file by its path in the folder, with slashes. */
  find(path: string): DashboardFile | undefined {
    return this.#read()?.get(path);
  }

  /** The page, for a base. Undefined if the dashboard was not built. */
  page(base: string): DashboardFile | undefined {
    const index = this.find(INDEX);
    if (!index) return undefined;
    const html = index.bytes.toString('utf8').replace(/<head[^>]*>/i, (head) => `${head}<base href="${base}" />`);
    return fileOf('.html', Buffer.from(html));
  }

  /** A folder that is not there is looked for again: the build may come later. */
  #read(): ReadonlyMap<string, DashboardFile> | undefined {
    const folder = this.#folder;
    if (this.#files || folder === undefined || !existsSync(join(folder, INDEX))) return this.#files;
    const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const isFile = (path: string): boolean => statSync(join(folder, path)).isFile();
    this.#files = new Map(
      paths
        .filter(isFile)
        .map((path) => [path.replaceAll(sep, '/'), fileOf(extname(path), readFileSync(join(folder, path)))]),
    );
    return this.#files;
  }
}

function fileOf(extension: string, bytes: Buffer): DashboardFile {
  return {
    type: TYPES[extension] ?? 'application/octet-stream',
    bytes,
    gzipped: COMPRESSED.has(extension) ? undefined : gzipSync(bytes),
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`,
  };
}

/** Looks for our package.json above this module, which is in `src/`, in `dist/shared/` or in `dist/cjs/shared/`. */
function builtFolder(): string | undefined {
  // Bundlers that write CommonJS leave no URL.
  const { url } = import.meta as { readonly url?: string };
  if (url === undefined) return undefined;
  let folder = dirname(fileURLToPath(url));
  for (;;) {
    if (nameOf(join(folder, 'package.json')) === 'everstep') return join(folder, 'dist', 'dashboard');
    const parent = dirname(folder);
    // Bundled with the application: there are no files of ours beside it.
    if (parent === folder) return undefined;
    folder = parent;
  }
}

function nameOf(path: string): unknown {
  if (!existsSync(path)) return undefined;
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { name?: unknown }).name;
  } catch {
    // Not JSON, so not ours.
    return undefined;
  }
}
