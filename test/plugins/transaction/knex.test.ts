import { conformance } from './conformance.js';

conformance('knex');
