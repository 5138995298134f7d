import { onlyOn } from '../rig/dialects.js';
import { templateTests } from './templates.js';

onlyOn('sqlite', templateTests);
