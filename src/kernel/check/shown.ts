// Values in error messages: short, on one line, and without running any code of theirs (`toJSON`, getters).

const SHOWN_MAX = 80;

/** A value as an error message shows it. Of objects only the kind is shown: they may be large, or hold secrets. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return shortened(JSON.stringify(value));
    case 'bigint':
      return shortened(`${value}n`);
    case 'number':
    case 'boolean':
    case 'undefined':
      return String(value);
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? 'an array' : 'an object';
    default:
      return `a ${typeof value}`;
  }
}

/** A key of an object in a path: `.limit`, `[2]`, or `["a b"]` if it is no identifier. */
export function shownKey(key: string): string {
  if (/^\d{1,10}$/.test(key)) return `[${key}]`;
  return /^[A-Za-z_$][\w$]{0,60}$/.test(key) ? `.${key}` : `[${shown(key)}]`;
}

function shortened(text: string): string {
  const line = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
  // What a terminal would act on, or that can't be seen: JSON escapes only a part of it.
  return line.replace(/[\p{Cc}\p{Cf}\p{Cs}]/gu, (character) => {
    return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
  });
}
