// The first page: what has gone on in the last hour or day, and what needs attention.
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client';
import { attention as attentionQuery, overview as overviewQuery } from '../api/queries';
import { Page } from '../frame/frame';
import { usePageSearch } from '../frame/searches';
import { formatCount, formatDuration, visibleText } from '../parts/format';
import { Empty, Failure, Loading } from '../parts/notice';
import { readListSearch } from '../workflows/filters';
import { Chart } from './chart';

type Overview = Schemas['Overview'];
type Item = Schemas['AttentionItem'];

/** Without changes, time still passes in the charts. */
const REFRESH_MS = 10_000;

export function OverviewPage(): ReactNode {
  const { window = '1h' } = usePageSearch('/');
  const { data, error, refetch } = useQuery({ ...overviewQuery(window), refetchInterval: REFRESH_MS });
  return (
    <Page title="Overview" extra={<WindowSwitch window={window} />}>
      <div className="page-body">
        <Failure error={error} onRetry={() => void refetch()} />
        {!data && !error && <Loading />}
        {data && <Charts overview={data} />}
        <Attention isEmpty={data !== undefined && isEmpty(data)} />
      </div>
    </Page>
  );
}

function WindowSwitch({ window }: { window: '1h' | '24h' }) {
  const navigate = useNavigate();
  const choose = (chosen: '1h' | '24h'): void =>
    void navigate({ to: '/', search: chosen === '24h' ? { window: '24h' } : {} });
  return (
    <div className="row-line" role="group" aria-label="Span">
      {(['1h', '24h'] as const).map((one) => (
        <button
          key={one}
          type="button"
          className={`button ${one === window ? '' : 'plain'}`}
          aria-pressed={one === window}
          onClick={() => choose(one)}
        >
          {one === '1h' ? 'Hour' : 'Day'}
        </button>
      ))}
    </div>
  );
}

function isEmpty({ buckets, queues }: Overview): boolean {
  const isQuiet = buckets.every(
    ({ created, succeeded, failed, cancelled }) => created + succeeded + failed + cancelled === 0,
  );
  return isQuiet && queues.every(({ enqueued, delayed, running }) => enqueued + delayed + running === 0);
}

function Charts({ overview: { buckets } }: { overview: Overview }) {
  const times = buckets.map(({ at }) => at);
  const values = (pick: (bucket: Overview['buckets'][number]) => number | null): (number | null)[] => buckets.map(pick);
  return (
    <div className="charts">
      <Chart
        title="Started and ended"
        times={times}
        format={formatCount}
        series={[
          { label: 'started', colour: '--running-bar', values: values(({ created }) => created) },
          { label: 'done', colour: '--done-bar', values: values(({ succeeded }) => succeeded), isFilled: true },
          {
            label: 'failed',
            colour: '--error-bar',
            values: values(({ failed, deadLettered }) => failed + deadLettered),
            isFilled: true,
          },
        ]}
      />
      <Chart
        title="Duration"
        times={times}
        format={formatDuration}
        series={[
          { label: 'p50', colour: '--done-bar', values: values(({ p50Ms }) => p50Ms) },
          { label: 'p95', colour: '--waiting-bar', values: values(({ p95Ms }) => p95Ms) },
        ]}
      />
      <Chart
        title="Waiting on queues"
        times={times}
        format={formatCount}
        series={[
          { label: 'waiting', colour: '--waiting-bar', values: values(({ waiting }) => waiting), isFilled: true },
        ]}
      />
      <Chart
        title="Longest wait"
        times={times}
        format={formatDuration}
        series={[{ label: 'wait', colour: '--dead-bar', values: values(({ longestWaitMs }) => longestWaitMs) }]}
      />
    </div>
  );
}

function Attention({ isEmpty: isNew }: { isEmpty: boolean }) {
  const { data, error, refetch } = useQuery({ ...attentionQuery, refetchInterval: REFRESH_MS });
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!data) return null;
  if (data.items.length === 0) return isNew ? <FirstSteps /> : <AllWell />;
  return (
    <section className="stack" aria-label="Needs attention">
      <h2>Needs attention</h2>
      <ul className="card attention">
        {data.items.map((item) => (
          <AttentionLine key={`${item.kind} ${item.title} ${item.reason}`} item={item} />
        ))}
      </ul>
    </section>
  );
}

const HARM: Readonly<Record<Item['harm'], { glyph: string; tone: string; word: string }>> = {
  high: { glyph: '▲', tone: 'error', word: 'high' },
  medium: { glyph: '◆', tone: 'waiting', word: 'medium' },
  low: { glyph: '●', tone: 'cancelled', word: 'low' },
};

/** The page that shows more, with the filters that the server names. */
function Show({ page, query }: Item['link']) {
  const queue = query['queueName'];
  switch (page) {
    case 'workflows':
      return <Link {...SHOW} to="/workflows" search={readListSearch(query)} />;
    case 'queues':
      return <Link {...SHOW} to="/queues" search={queue === undefined ? {} : { queue }} />;
    case 'executors':
      return <Link {...SHOW} to="/executors" />;
    case 'outboxes':
    case 'receivers':
      return <Link {...SHOW} to="/outbox" />;
    case 'settings':
      return <Link {...SHOW} to="/settings" />;
  }
}

const SHOW = { className: 'button', children: 'Show' } as const;

function AttentionLine({ item: { title, count, reason, harm, link } }: { item: Item }) {
  const { glyph, tone, word } = HARM[harm];
  return (
    <li>
      <span className={`state ${tone}`} title={`Harm: ${word}`}>
        <span aria-hidden="true">{glyph}</span> {word}
      </span>
      <strong className="number">{formatCount(count)}</strong>
      <span className="attention-text">
        <b>{visibleText(title)}</b> <span className="soft">{visibleText(reason)}</span>
      </span>
      <Show {...link} />
    </li>
  );
}

function AllWell() {
  return (
    <div className="notice">
      <span className="state done">✓ all well</span>
      <span className="soft">Nothing needs attention.</span>
    </div>
  );
}

function FirstSteps() {
  return (
    <Empty title="Start a first workflow">
      <p>These lines in your application are enough. It then appears here.</p>
      <pre>
        {
          "const greet = DBOS.registerWorkflow(async (name: string) => `Hello ${name}`, { name: 'greet' });\nawait DBOS.launch();\nawait greet('world');"
        }
      </pre>
    </Empty>
  );
}
