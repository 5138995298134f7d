// What the pages of the dashboard ask the server for, in a long history.
import type { Admin } from '../../src/faces/http/admin.js';
import { type Measurement, median, timed } from '../report.js';

export interface Subject {
  readonly rows: number;
  /** Of the last workflow of the history. */
  readonly endsAt: number;
}

const ROUNDS = 7;
const PAGE = 'limit=100&sortDesc=true';
const EXACT = 'exactMax=10000';
const HOUR_MS = 3_600_000;

type Ask = readonly [path: string, body?: object];

function questions({ rows, endsAt }: Subject): Readonly<Record<string, Ask>> {
  const since = `startTime=${encodeURIComponent(new Date(endsAt - HOUR_MS).toISOString())}`;
  const workflow = `/workflows/order-${(rows - 200) % 1000}-${rows - 200}`;
  return {
    list: [`/workflows?${PAGE}`],
    'list, oldest first': ['/workflows?limit=100&sortDesc=false'],
    'list: failed': [`/workflows?${PAGE}&status=ERROR`],
    'list: running': [`/workflows?${PAGE}&status=PENDING`],
    'list: enqueued, few and the oldest': [`/workflows?${PAGE}&status=ENQUEUED`],
    'list: cancelled, none': [`/workflows?${PAGE}&status=CANCELLED`],
    'list: dead letters, none': [`/workflows?${PAGE}&status=MAX_RECOVERY_ATTEMPTS_EXCEEDED`],
    'list: last hour': [`/workflows?${PAGE}&${since}`],
    'list: of a function': [`/workflows?${PAGE}&workflowName=checkout`],
    'list: of a function, ten and the oldest': [`/workflows?${PAGE}&workflowName=archive`],
    'list: of a function without workflows': [`/workflows?${PAGE}&workflowName=nothing`],
    'list: of a queue': [`/workflows?${PAGE}&queueName=mail`],
    'list: of a queue and failed': [`/workflows?${PAGE}&queueName=mail&status=ERROR`],
    'list: of an executor without workflows': [`/workflows?${PAGE}&executorId=nothing`],
    'list: of a version': [`/workflows?${PAGE}&applicationVersion=v1`],
    'search by ID prefix, one in a thousand': [`/workflows?${PAGE}&workflowIDPrefix=order-17-`],
    'search by ID prefix, one': [`/workflows?${PAGE}&workflowIDPrefix=order-17-17`],
    'search by ID prefix, all': [`/workflows?${PAGE}&workflowIDPrefix=order`],
    'search by ID prefix, none': [`/workflows?${PAGE}&workflowIDPrefix=nothing`],
    count: [`/workflow-count?${EXACT}`],
    'count: failed': [`/workflow-count?${EXACT}&status=ERROR`],
    'count: running': [`/workflow-count?${EXACT}&status=PENDING`],
    'count: cancelled, none': [`/workflow-count?${EXACT}&status=CANCELLED`],
    'count: last hour': [`/workflow-count?${EXACT}&${since}`],
    'count: of a function': [`/workflow-count?${EXACT}&workflowName=checkout`],
    'count: of a function without workflows': [`/workflow-count?${EXACT}&workflowName=nothing`],
    'count: by ID prefix': [`/workflow-count?${EXACT}&workflowIDPrefix=order-17-`],
    'overview, an hour': ['/overview?window=1h'],
    'overview, a day': ['/overview?window=24h'],
    attention: ['/attention'],
    queues: ['/queues'],
    'queue depths': ['/queue-stats'],
    'details of a queue': ['/queues/mail/details'],
    executors: ['/executors'],
    versions: ['/versions'],
    'open work by version': [
      '/aggregates/workflows',
      { groupByApplicationVersion: true, selectCount: true, status: ['PENDING', 'ENQUEUED', 'DELAYED'] },
    ],
    schedules: ['/schedules'],
    'dead letters of receivers': ['/receivers/dead-letter-groups'],
    health: ['/health'],
    retention: ['/retention'],
    info: ['/info'],
    'a workflow': [workflow],
    'why it waits': [`${workflow}/explanation`],
    'its timeline': [`${workflow}/timeline?limit=1000`],
    'its history': [`${workflow}/history?limit=500`],
    'its steps': [`${workflow}/steps?limit=1000`],
    'its tree': [`${workflow}/tree`],
  };
}

/** How long each question takes: the first time, and usually. */
export async function measureRoutes(admin: Admin, subject: Subject): Promise<Measurement[]> {
  const lines: Measurement[] = [];
  for (const [label, question] of Object.entries(questions(subject))) {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) times.push(await timed(() => ask(admin, question)));
    lines.push({ label, value: `${median(times).toFixed(1)} ms`, ratio: `first ${times[0]?.toFixed(1)} ms` });
  }
  return lines;
}

async function ask(admin: Admin, [path, body]: Ask): Promise<void> {
  const response = await admin.fetch(
    new Request(`http://localhost/api/v1${path}`, {
      method: body ? 'POST' : 'GET',
      headers: body ? { 'content-type': 'application/json' } : {},
      body: body && JSON.stringify(body),
    }),
  );
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`);
}
