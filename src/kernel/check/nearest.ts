// Which known word a misspelt one was probably meant to be.

/** The known word that is closest, or undefined if none is close enough to suggest. */
export function nearest(written: string, known: readonly string[]): string | undefined {
  const distanceMax = Math.max(2, Math.floor(written.length / 4));
  let best: string | undefined;
  let bestDistance = distanceMax + 1;
  for (const word of known) {
    // Also bounds the work for a hostile key: only words of about its length are compared.
    if (Math.abs(word.length - written.length) > distanceMax) continue;
    const distance = editDistance(written.toLowerCase(), word.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [word, distance];
  }
  return best;
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
