/** The promise, or the signal's reason if that aborts first. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Aborts with the first of them. */
export function eitherOf(signal: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return signal && other ? AbortSignal.any([signal, other]) : (signal ?? other);
}
