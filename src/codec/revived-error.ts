// Makes an Error from stored fields. The class is lost; name, message and stack are preserved.

/** An Error with the given name, message and stack, none of them enumerable, as on a live one. */
export function makeError(fields: {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly stack?: unknown;
}): Error {
  const name = typeof fields.name === 'string' ? fields.name : 'Error';
  const message = typeof fields.message === 'string' ? fields.message : '';
  const error = new Error(message);
  // The stack of this call would be misleading.
  const stack = typeof fields.stack === 'string' ? fields.stack : `${name}: ${message}`;
  Object.defineProperty(error, 'stack', { value: stack, writable: true, configurable: true });
  if (name !== 'Error') Object.defineProperty(error, 'name', { value: name, writable: true, configurable: true });
  return error;
}
