// Reads the names of a function's parameters from its source. A pattern such as `{ a, b }` is one parameter without a
// name.
import type { FunctionOwner } from './function-owner.js';
import { MethodParameter } from './method-parameter.js';
import type { UserFunction } from './registry.js';

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
export function parametersOf(fn: UserFunction, owner: FunctionOwner): MethodParameter[] {
  const types = declaredTypes(fn, owner);
  const names = parameterNames(fn);
  return (types ?? names).map((_, index) =>
    Object.assign(new MethodParameter(index, types?.[index]), { name: names[index] ?? '' }),
  );
}

/** The types that the compiler recorded for a decorated method, if the application has loaded `reflect-metadata`. */
function declaredTypes(fn: UserFunction, { ownerClass, isInstance }: FunctionOwner): unknown[] | undefined {
  const { getMetadata } = Reflect as { getMetadata?: (key: string, target: object, property: string) => unknown };
  if (!getMetadata || !ownerClass) return undefined;
  const target = isInstance ? (ownerClass.prototype as object) : ownerClass;
  const types = getMetadata('design:paramtypes', target, fn.name);
  return Array.isArray(types) ? types : undefined;
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
