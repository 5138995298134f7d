import { conformance } from './conformance.js';

conformance('kysely-sqlite');
