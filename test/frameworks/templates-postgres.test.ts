import { onlyOn } from '../rig/dialects.js';
import { templateTests } from './templates.js';

onlyOn('postgres', templateTests);
