#!/usr/bin/env node
// The command `everstep`.
import { COMMANDS } from './commands.js';
import { invoke } from './invoke.js';

void invoke(COMMANDS);
