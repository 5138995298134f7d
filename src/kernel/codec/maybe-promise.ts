// Results that are promises only if the serializer is asynchronous. The default format is on the hot path, where a needless
// await costs more than the encoding: each makes two promises. So there: `isPromise(result) ? await result : result`.

export type MaybePromise<T> = T | Promise<T>;

/** Applies `next` to the value, now or when the promise resolves. */
export function andThen<T, U>(value: MaybePromise<T>, next: (value: T) => MaybePromise<U>): MaybePromise<U> {
  return isPromise<T>(value) ? Promise.resolve(value).then(next) : next(value);
}

/** Runs `attempt`, and `recover` if it throws or rejects. */
export function orElse<T>(
  attempt: () => MaybePromise<T>,
  recover: (error: unknown) => MaybePromise<T>,
): MaybePromise<T> {
  try {
    const result = attempt();
    return isPromise<T>(result) ? Promise.resolve(result).catch(recover) : result;
  } catch (error) {
    return recover(error);
  }
}

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
