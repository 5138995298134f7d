// Database URLs: which dialect they name, where a SQLite file is, and how to show one without its password.

/** `sqlite:///relative.sqlite`, `sqlite:////absolute.sqlite`, `sqlite::memory:` or `sqlite://:memory:`. */
const SQLITE_URL = /^sqlite:(?:\/\/\/?)?(.*)$/i;
const POSTGRES_URL = /^postgres(?:ql)?:\/\//i;

export type DatabaseLocation =
  { readonly kind: 'sqlite'; readonly path: string } | { readonly kind: 'postgres'; readonly url: string };

/** Tells where a database URL points, or undefined when it is of neither kind. */
export function locateDatabase(url: string): DatabaseLocation | undefined {
  if (POSTGRES_URL.test(url)) return { kind: 'postgres', url };
  const path = SQLITE_URL.exec(url)?.[1]?.replace(/\?.*$/, '');
  return path ? { kind: 'sqlite', path } : undefined;
}

/** The text with every password in a URL or key-value form replaced, fit for logs and errors. */
export function withoutPasswords(text: string): string {
  return text
    .replace(/(\w+:\/\/[^\s/:@]*:)[^\s]*@(?=[^\s@]*(?:[\s/?]|$))/g, '$1***@')
    .replace(/((?:password|pwd|sslpassword)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s&,}]+)/gi, '$1***');
}
