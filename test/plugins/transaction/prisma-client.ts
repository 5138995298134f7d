// A client that Prisma generates for the tables of these tests. Generating needs no engine, but looks for one: it gets a
// program that does nothing.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.js';

const SCHEMA = `
generator client {
  provider = "prisma-client"
  output   = "./generated"
}
datasource db {
  provider = "postgresql"
}
model effects {
  workflow_id String
  note        String @id
}
`;
const CLIENT = 'prisma-client.mjs';

/** Where the generated client is, as one file. */
export function prismaClientPath(folder: string): string {
  return join(folder, CLIENT);
}

export async function generatePrismaClient(folder: string): Promise<void> {
  const own = join(folder, `prisma-${process.pid}`);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, 'schema.prisma'), SCHEMA);
  const program = fileURLToPath(new URL('../../../node_modules/prisma/build/index.js', import.meta.url));
  execFileSync(process.execPath, [program, 'generate', '--schema', join(own, 'schema.prisma')], {
    cwd: own,
    stdio: 'pipe',
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
  });
  await bundle(join(own, 'generated', 'client.ts'), folder, CLIENT);
}
