// What `everstep doctor` says about an outbox: messages that are not fetched in time, or by no process, and dead letters.
import type { QueueStatistics } from './consume/statistics.js';
import { isPaused } from './health.js';
import type { CommandContext } from '../../faces/cli/command.js';
import { CommandFailure } from '../../faces/cli/failure.js';
import type { Values } from '../../faces/cli/option.js';
import { findOutboxDatabase, MissingTable, OUTBOX, type WITHOUT, withOutbox } from './connection.cli.js';

const { dbUrl, table, dlqTable, stateTable } = OUTBOX;

export const DOCTOR_OUTBOX = { dbUrl, table, dlqTable, stateTable };

export interface OutboxReport {
  readonly database: string;
  readonly queues: readonly QueueStatistics[];
  readonly paused: readonly string[];
}

export interface OutboxFinding {
  readonly kind: 'problem' | 'notice';
  readonly subject: 'outbox';
  readonly message: string;
}

export interface OutboxDiagnosis {
  /** Undefined if there is no outbox. */
  readonly outbox?: OutboxReport;
  readonly findings: readonly OutboxFinding[];
}

/** The tables of dead letters and of paused topics are optional. */
const LEFT_OUT: readonly Values<typeof WITHOUT>['without'][] = [[], ['state'], ['dlq'], ['dlq', 'state']];
const LAG_MAX_MS = 300_000;

/** Looks in the application's database if one is known, and else in the system database. */
export async function diagnoseOutbox(
  context: CommandContext,
  options: Values<typeof DOCTOR_OUTBOX>,
  systemURL: string,
): Promise<OutboxDiagnosis> {
  const url = findOutboxDatabase(context, options.dbUrl)?.url ?? systemURL;
  for (const without of LEFT_OUT) {
    try {
      const outbox = await readOutbox(context, { ...options, dbUrl: url, without });
      return { outbox, findings: outbox.queues.flatMap((queue) => judge(queue, outbox.paused)) };
    } catch (error) {
      context.signal.throwIfAborted();
      if (error instanceof MissingTable) continue;
      if (!(error instanceof CommandFailure)) throw error;
      return { findings: [{ kind: 'notice', subject: 'outbox', message: `No outbox was checked. ${error.message}` }] };
    }
  }
  return { findings: [] };
}

function readOutbox(
  context: CommandContext,
  given: Values<typeof DOCTOR_OUTBOX> & Values<typeof WITHOUT>,
): Promise<OutboxReport> {
  // The schema that doctor is given is that of the system tables.
  return withOutbox(context, { ...given, schema: undefined }, async (outbox, { shown }) => {
    const { queues, paused } = await outbox.health();
    return { database: shown, queues, paused };
  });
}

function judge(
  { queue, due, inFlight, stale, lagMs, deadLetters }: QueueStatistics,
  paused: readonly string[],
): OutboxFinding[] {
  const problem = (message: string): OutboxFinding => ({ kind: 'problem', subject: 'outbox', message });
  const isHeld = isPaused(paused, queue);
  const isLate = lagMs > LAG_MAX_MS && due > 0;
  const minutes = Math.round(lagMs / 60_000);
  return [
    ...(isHeld && due > 0
      ? [
          {
            kind: 'notice',
            subject: 'outbox',
            message: `Topic "${queue}" is paused with ${due} message(s) due. Resume it when you are ready.`,
          } as const,
        ]
      : []),
    ...(isLate && !isHeld && inFlight === 0
      ? [
          problem(
            `${due} message(s) of topic "${queue}" are due, the oldest for ${minutes} minutes, and none is in flight. ` +
              'Start a process that consumes or relays the topic.',
          ),
        ]
      : []),
    ...(isLate && !isHeld && inFlight > 0
      ? [
          problem(
            `${due} message(s) of topic "${queue}" are due, the oldest for ${minutes} minutes. ` +
              'Its consumers do not keep up: add processes, or raise their concurrency.',
          ),
        ]
      : []),
    ...(stale > 0
      ? [problem(`${stale} message(s) of topic "${queue}" have been leased for too long, probably by dead processes.`)]
      : []),
    ...(deadLetters > 0
      ? [problem(`${deadLetters} dead letter(s) of topic "${queue}". See: everstep outbox dlq groups`)]
      : []),
  ];
}
