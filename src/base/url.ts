// Database URLs: their dialect, the path of a SQLite file, and masking of passwords.

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

/** Masks passwords in URLs and key-value pairs, for logs and errors. */
export function withoutPasswords(text: string): string {
  return text
    .replace(/(\w+:\/\/[^\s/:@]*:)[^\s]*@(?=[^\s@]*(?:[\s/?]|$))/g, '$1***@')
    .replace(/((?:password|pwd|sslpassword)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s&,}]+)/gi, '$1***');
}
