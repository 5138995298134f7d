// JSON that people type.
export function parseJSON(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message names a position, which says little about a short text.
    throw new Error('This is not valid JSON. Texts need quotes.');
  }
}
