// Input schemas: an object with `parse`, or any Standard Schema.
import { DBOSDataValidationError } from '../../model/errors/errors.js';
import type { InputSchema } from './registry.js';

interface StandardResult {
  readonly value?: unknown;
  readonly issues?: readonly {
    readonly message: string;
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[];
  }[];
}

/** Checks the arguments and returns them as the schema has transformed them. */
export async function validateInputs(schema: InputSchema, args: unknown[]): Promise<unknown[]> {
  const checked = await validate(schema, args, 'The arguments of the workflow are');
  if (!Array.isArray(checked)) {
    throw new DBOSDataValidationError('The input schema must describe the array of arguments, and return an array.');
  }
  return checked as unknown[];
}

/** Checks a value and returns it as the schema has transformed it. `what` begins the message of the error. */
export async function validate(schema: InputSchema, value: unknown, what: string): Promise<unknown> {
  // A schema of zod is both; its own `parse` throws its own error, which its users expect.
  if ('parse' in schema) return schema.parse(value);
  const result = (await schema['~standard'].validate(value)) as StandardResult;
  if (result.issues === undefined) return result.value;
  const problems = result.issues.map(({ message, path }) => {
    const where = (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    return where === '' ? message : `${where}: ${message}`;
  });
  throw new DBOSDataValidationError(`${what} not valid: ${problems.join('; ')}`);
}
