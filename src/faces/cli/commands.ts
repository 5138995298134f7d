// The command table, in the order of the help and the reference page.
import type { Command } from './command.js';
import { completionCommand } from './completion.js';
import { DATABASE_COMMANDS } from './commands/database.js';
import { DASHBOARD_COMMANDS } from './dashboard/dashboard.js';
import { DOCTOR_COMMANDS } from '../../features/diagnosis/doctor.cli.js';
import { INDEX_COMMANDS } from '../../features/listing/index-commands.cli.js';
import { OUTBOX_COMMANDS } from '../../plugins/outbox/commands.cli.js';
import { OUTBOX_DLQ_COMMANDS } from '../../plugins/outbox/dead-letters.cli.js';
import { OUTBOX_RETENTION_COMMANDS } from '../../plugins/outbox/retention.cli.js';
import { PROJECT_COMMANDS } from './project/init.js';
import { QUEUE_COMMANDS } from '../../features/queue/queue.cli.js';
import { RECEIVER_COMMANDS } from '../../features/dead-letter/dead-letters.cli.js';
import { RETENTION_COMMANDS } from '../../features/retention/retention.cli.js';
import { SCHEDULE_COMMANDS } from '../../features/schedule/schedule.cli.js';
import { UPKEEP_COMMANDS } from './commands/upkeep.js';
import { VERSION_COMMANDS } from '../../features/version/version.cli.js';
import { WORKFLOW_AGAIN_COMMANDS } from '../../features/lifecycle/workflow-again.cli.js';
import { WORKFLOW_BEGIN_COMMANDS } from '../../features/lifecycle/workflow-begin.cli.js';
import { WORKFLOW_CHANGE_COMMANDS } from '../../features/lifecycle/workflow-change.cli.js';
import { WORKFLOW_HISTORY_COMMANDS } from '../../features/history/workflow-history.cli.js';
import { HISTORY_COMMANDS } from '../../features/history/partition.cli.js';
import { WORKFLOW_INSPECT_COMMANDS } from '../../features/listing/workflow-inspect.cli.js';
import { WORKFLOW_LIST_COMMANDS } from '../../features/listing/workflow-list.cli.js';
import { WORKFLOW_TRANSFER_COMMANDS } from '../../features/transfer/workflow-transfer.cli.js';

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
  completionCommand(() => COMMANDS),
];
