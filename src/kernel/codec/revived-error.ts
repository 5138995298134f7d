// Makes an Error from stored fields.

/**
 * An Error with the given name, message and stack, none of them enumerable, as on a live one. `prototype` is that of its
 * class, whose constructor is not called: it may want arguments, or do anything.
 */
export function makeError(
  fields: { readonly name?: unknown; readonly message?: unknown; readonly stack?: unknown },
  prototype: object = Error.prototype,
): Error {
  const name = typeof fields.name === 'string' ? fields.name : 'Error';
  const message = typeof fields.message === 'string' ? fields.message : '';
  // What reads the name and code of a DOMException works on nothing else.
  const error = isOfDOM(prototype) ? new DOMException(message, name) : new Error(message);
  // The stack of this call would be misleading. Before the class is set: making the stack reads the name.
  const stack = typeof fields.stack === 'string' ? fields.stack : `${name}: ${message}`;
  Object.defineProperty(error, 'stack', { value: stack, writable: true, configurable: true });
  if (Object.getPrototypeOf(error) !== prototype) Object.setPrototypeOf(error, prototype);
  if (nameOf(error) !== name) Object.defineProperty(error, 'name', { value: name, writable: true, configurable: true });
  return error;
}

function isOfDOM(prototype: object): boolean {
  return prototype === DOMException.prototype || prototype instanceof DOMException;
}

/** A getter of the class may need what only its constructor makes. */
function nameOf(error: Error): unknown {
  try {
    return error.name;
  } catch {
    // It is replaced by the stored name.
    return undefined;
  }
}
