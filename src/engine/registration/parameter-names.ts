// Reads the names of a function's parameters from its source. A pattern such as `{ a, b }` is one parameter without a
// name.
import type { Registration, UserFunction } from './registry.js';

/** Comments, strings and templates: brackets and commas in them do not count. */
const OPAQUE = /\/\*[^]*?\*\/|\/\/[^\n]*|'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*"|`(?:\\[^]|[^`\\])*`/g;
const OPENING = '([{';
const CLOSING = ')]}';

export function parameterNames(fn: UserFunction): string[] {
  const source = fn.toString().replace(OPAQUE, ' ');
  const bare = /^\s*(?:async\s+)?([\p{ID_Start}$_][\p{ID_Continue}$]*)\s*=>/u.exec(source)?.[1];
  return bare === undefined ? splitList(source.slice(source.indexOf('(') + 1)).map(nameOf) : [bare];
}

/** The parameters of a function to register. */
export function parametersOf(fn: UserFunction): Registration['parameters'] {
  return parameterNames(fn).map((name, index) => ({ name, index, external: new Map() }));
}

/** The parts between the commas of a list, up to the bracket that closes it. */
function splitList(text: string): string[] {
  const parts = [''];
  let depth = 0;
  for (const char of text) {
    if (CLOSING.includes(char) && depth === 0) break;
    if (OPENING.includes(char)) depth += 1;
    if (CLOSING.includes(char)) depth -= 1;
    if (char === ',' && depth === 0) parts.push('');
    else parts.push((parts.pop() ?? '') + char);
  }
  // An empty list, or a trailing comma.
  if (parts.at(-1)?.trim() === '') parts.pop();
  return parts;
}

function nameOf(part: string): string {
  return /^\s*(?:\.\.\.)?\s*([\p{ID_Start}$_][\p{ID_Continue}$]*)/u.exec(part)?.[1] ?? '';
}
