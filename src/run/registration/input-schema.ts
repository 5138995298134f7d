// Validates inputs with a user's schema: an object with `parse`, or any Standard Schema.
import { DBOSDataValidationError } from '../../kernel/errors/errors.js';
import type { InputSchema } from './registry.js';

interface StandardResult {
  readonly value?: unknown;
  readonly issues?: readonly {
    readonly message: string;
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[];
  }[];
}

/** Returns the arguments as the schema has transformed them. */
export async function validateInputs(schema: InputSchema, args: unknown[]): Promise<unknown[]> {
  const checked = await validate(schema, args, 'The arguments of the workflow are');
  if (!Array.isArray(checked)) {
    throw new DBOSDataValidationError('The input schema must describe the array of arguments, and return an array.');
  }
  return checked as unknown[];
}

/** Returns the value as the schema has transformed it. `what` begins the error message. */
export async function validate(schema: InputSchema, value: unknown, what: string): Promise<unknown> {
  // Zod schemas are both. Prefer `parse`: it throws a ZodError, which zod users expect.
  if ('parse' in schema) return schema.parse(value);
  const result = (await schema['~standard'].validate(value)) as StandardResult;
  if (result.issues === undefined) return result.value;
  const problems = result.issues.map(({ message, path }) => {
    const where = (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    return where === '' ? message : `${where}: ${message}`;
  });
  throw new DBOSDataValidationError(`${what} not valid: ${problems.join('; ')}`);
}
