// A parameter decorator of DBOS, for plugins that find arguments by the names of parameters.
import { internals } from '../../kernel/base/internals.js';
import type { UserFunction } from '../../run/registration/registry.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { filledName } from '../../kernel/check/validation.js';
import { DBOS } from './dbos.js';

/** Parameter decorator: the name under which plugins find the argument, instead of the one in the source. */
export function ArgName(name: string): (target: object, propertyKey: string | symbol, parameterIndex: number) => void {
  filledName.read(name, 'name');
  return (target, propertyKey, parameterIndex) => {
    const fn = (target as Record<string | symbol, unknown>)[propertyKey];
    if (typeof fn !== 'function') {
      throw new DBOSInvalidArgumentError('@ArgName belongs on a parameter of a method.', 'name');
    }
    const owner = { ctorOrProto: target, name: String(propertyKey) };
    const { parameters } = DBOS[internals].functions.registerPlain(fn as UserFunction, owner);
    const parameter = parameters[parameterIndex];
    if (parameter) parameter.name = name;
  };
}
