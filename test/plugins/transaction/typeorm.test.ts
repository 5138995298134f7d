import { conformance } from './conformance.js';

conformance('typeorm');
