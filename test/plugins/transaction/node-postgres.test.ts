import { conformance } from './conformance.js';

conformance('node-postgres');
