// How engines and claims name workflow functions and configured instances: `class.name` and `class/instance`. Names may
// contain dots and slashes, so those of the class are escaped: else "A.b" and "c" would be the same as "A" and "b.c".

/** The same replacements, in the same order, are in the statement that claims workflows. */
export const CLASS_NAME_ESCAPES = [
  ['~', '~~'],
  ['.', '~-'],
  ['/', '~_'],
] as const;

export function functionKey(className: string | null, name: string): string {
  return `${escaped(className)}.${name}`;
}

export function instanceKey(className: string | null, instanceName: string): string {
  return `${escaped(className)}/${instanceName}`;
}

function escaped(className: string | null): string {
  return CLASS_NAME_ESCAPES.reduce((text, [from, to]) => text.replaceAll(from, to), className ?? '');
}
