import { beforeAll, inject } from 'vitest';
import { conformance } from './conformance.js';
import { generatePrismaClient } from './prisma-client.js';

beforeAll(() => generatePrismaClient(inject('folder')));

conformance('prisma');
