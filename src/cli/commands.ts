// The command table, in the order of the help and the reference page.
import type { Command } from './command.js';
import { completionCommand } from './completion.js';
import { DATABASE_COMMANDS } from './commands/database.js';
import { DASHBOARD_COMMANDS } from './dashboard/dashboard.js';
import { DOCTOR_COMMANDS } from './commands/doctor.js';
import { INDEX_COMMANDS } from './commands/index-commands.js';
import { OUTBOX_COMMANDS } from './outbox/commands.js';
import { OUTBOX_DLQ_COMMANDS } from './outbox/dead-letters.js';
import { OUTBOX_RETENTION_COMMANDS } from './outbox/retention.js';
import { POSTGRES_COMMANDS } from './commands/postgres.js';
import { PROJECT_COMMANDS } from './project/init.js';
import { QUEUE_COMMANDS } from './commands/queue.js';
import { RECEIVER_COMMANDS } from './receiving/dead-letters.js';
import { RETENTION_COMMANDS } from './commands/retention.js';
import { SCHEDULE_COMMANDS } from './commands/schedule.js';
import { UPKEEP_COMMANDS } from './commands/upkeep.js';
import { VERSION_COMMANDS } from './commands/version.js';
import { WORKFLOW_AGAIN_COMMANDS } from './commands/workflow-again.js';
import { WORKFLOW_BEGIN_COMMANDS } from './commands/workflow-begin.js';
import { WORKFLOW_CHANGE_COMMANDS } from './commands/workflow-change.js';
import { WORKFLOW_HISTORY_COMMANDS } from './journal/workflow-history.js';
import { HISTORY_COMMANDS } from './journal/partition.js';
import { WORKFLOW_INSPECT_COMMANDS } from './commands/workflow-inspect.js';
import { WORKFLOW_LIST_COMMANDS } from './commands/workflow-list.js';
import { WORKFLOW_TRANSFER_COMMANDS } from './commands/workflow-transfer.js';

export const COMMANDS: readonly Command[] = [
  ...PROJECT_COMMANDS,
  ...DATABASE_COMMANDS,
  ...DOCTOR_COMMANDS,
  ...DASHBOARD_COMMANDS,
  ...UPKEEP_COMMANDS,
  ...WORKFLOW_LIST_COMMANDS,
  ...WORKFLOW_INSPECT_COMMANDS,
  ...WORKFLOW_HISTORY_COMMANDS,
  ...WORKFLOW_BEGIN_COMMANDS,
  ...WORKFLOW_CHANGE_COMMANDS,
  ...WORKFLOW_AGAIN_COMMANDS,
  ...WORKFLOW_TRANSFER_COMMANDS,
  ...RETENTION_COMMANDS,
  ...HISTORY_COMMANDS,
  ...INDEX_COMMANDS,
  ...QUEUE_COMMANDS,
  ...SCHEDULE_COMMANDS,
  ...VERSION_COMMANDS,
  ...RECEIVER_COMMANDS,
  ...OUTBOX_COMMANDS,
  ...OUTBOX_DLQ_COMMANDS,
  ...OUTBOX_RETENTION_COMMANDS,
  ...POSTGRES_COMMANDS,
  completionCommand(() => COMMANDS),
];
