#!/usr/bin/env node
// The command `dbos`: that of Everstep, with the output of DBOS where it has the same command.
import { DBOS_COMMANDS } from './commands/dbos.js';
import { invoke } from './invoke.js';

void invoke(DBOS_COMMANDS);
