// URLs: the dialect of a database, the path of a SQLite file, masking of passwords, and paths of requests.

/** `sqlite:///relative.sqlite`, `sqlite:////absolute.sqlite`, `sqlite::memory:` or `sqlite://:memory:`. */
const SQLITE_URL = /^sqlite:(?:\/\/\/?)?(.*)$/i;
const POSTGRES_URL = /^postgres(?:ql)?:\/\//i;

export type DatabaseLocation =
  { readonly kind: 'sqlite'; readonly path: string } | { readonly kind: 'postgres'; readonly url: string };

/** Where a database URL points; undefined if it is of neither kind. */
export function locateDatabase(url: string): DatabaseLocation | undefined {
  if (POSTGRES_URL.test(url)) return { kind: 'postgres', url };
  const path = SQLITE_URL.exec(url)?.[1]?.replace(/\?.*$/, '');
  return path ? { kind: 'sqlite', path } : undefined;
}

/** Masks passwords in URLs and key-value pairs, for logs and errors. Linear: the text may be long, and hostile. */
export function withoutPasswords(text: string): string {
  return text
    .replace(/\S+/g, withoutURLPassword)
    .replace(/((?:password|pwd|sslpassword)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s&,}]+)/gi, '$1***');
}

/** Everything from the first colon after a user to the last `@`, which a password may contain too. */
function withoutURLPassword(word: string): string {
  const end = word.lastIndexOf('@');
  for (let start = word.indexOf('://'); start >= 0 && start < end; start = word.indexOf('://', start + 3)) {
    const user = /[^/:@]*/y;
    user.lastIndex = start + 3;
    user.test(word);
    const colon = user.lastIndex;
    if (start > 0 && word[colon] === ':' && colon < end) return `${word.slice(0, colon + 1)}***${word.slice(end)}`;
  }
  return word;
}

/**
 * Whether servers disagree on what the path of a request names: it does not begin with exactly one slash, or has a dot
 * segment, a backslash, a fragment or a control character. A guard in front of us may have read it as another path.
 */
export function isAmbiguousPath(path: string): boolean {
  return !/^\/(?!\/)/.test(path) || /[\\#\0- \x7f]/.test(path) || /\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path);
}
