import { conformance } from './conformance.js';

conformance('drizzle');
