import { conformance } from './conformance.js';

conformance('better-sqlite3');
