// Compares secrets in constant time.
import { createHash, timingSafeEqual } from 'node:crypto';

export function isSameText(given: string, secret: string): boolean {
  // Digests have equal length, so the comparison leaks nothing about the secret.
  return timingSafeEqual(digest(given), digest(secret));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
