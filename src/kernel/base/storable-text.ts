// JSON as every database stores it: Postgres refuses the character 0 and halves of surrogate pairs.

/** Numbers that JSON has not become text. Throws if a value cannot be written. */
export function storableText(value: object): string {
  const text = JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? part.toString() : part));
  return text.replace(/\\u(?:0000|d[89a-f][0-9a-f]{2})/gi, '\\ufffd');
}
