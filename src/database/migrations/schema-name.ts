// Which names a schema may have.
import { InvalidSchemaNameError } from '../../kernel/errors/errors.js';

/** Postgres truncates longer names. */
export const SCHEMA_NAME_BYTES_MAX = 63;

/** Throws for a name that Postgres would reject or truncate. All characters but NUL are allowed. */
export function checkSchemaName(schema: string): void {
  if (schema !== '' && !schema.includes('\0') && Buffer.byteLength(schema) <= SCHEMA_NAME_BYTES_MAX) return;
  throw new InvalidSchemaNameError(
    `Invalid schema name ${JSON.stringify(schema)}: it must have 1 to ${SCHEMA_NAME_BYTES_MAX} bytes, none of them NUL.`,
  );
}
