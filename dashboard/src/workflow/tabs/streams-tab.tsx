// The streams of a workflow. They grow while it runs; the view stays at the end unless someone scrolls up.
import { useQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import type { Schemas, Value, Workflow } from '../../api/client';
import { streams as streamsQuery, streamValues } from '../../api/queries';
import { formatCount, visibleText } from '../../parts/format';
import { Empty, Failure, Loading } from '../../parts/notice';
import { isActive } from '../../parts/state';

const SHOWN_CHARACTERS = 2000;

export function StreamsTab({ workflow }: { workflow: Workflow }) {
  const { data, error, refetch } = useQuery({
    ...streamsQuery(workflow.workflowID),
    refetchInterval: isActive(workflow) ? 1000 : false,
  });
  if (error) return <Failure error={error} onRetry={() => void refetch()} />;
  if (!data) return <Loading />;
  const { streams } = data;
  if (streams.length === 0) return <Empty title="It has written to no stream." />;
  return streams.map((stream) => <Stream key={stream.key} workflowID={workflow.workflowID} stream={stream} />);
}

function Stream({ workflowID, stream: { key, length } }: { workflowID: string; stream: Schemas['Stream'] }) {
  const { data, error, refetch } = useQuery(streamValues(workflowID, key));
  const known = data?.length;
  useEffect(() => {
    if (known !== undefined && known < length) void refetch();
  }, [known, length, refetch]);
  return (
    <section className="card panel">
      <div className="row-line">
        <h2>{visibleText(key)}</h2>
        <span className="soft">{formatCount(length)} values</span>
      </div>
      <Failure error={error} onRetry={() => void refetch()} />
      {data && <StreamValues values={data} name={key} />}
    </section>
  );
}

function StreamValues({ values, name }: { values: readonly Value[]; name: string }) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const virtual = useVirtualizer({
    count: values.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 24,
    overscan: 20,
  });
  useEffect(() => {
    if (isAtEnd.current && values.length > 0) virtual.scrollToIndex(values.length - 1);
  }, [virtual, values.length]);
  return (
    <div
      className="scroll-list stream"
      ref={scroller}
      tabIndex={0}
      role="group"
      aria-label={`Values of ${visibleText(name)}`}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight >= scrollHeight - 40;
      }}
    >
      <ol className="list-rows" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => (
          <li
            key={index}
            data-index={index}
            ref={virtual.measureElement}
            className="stream-value"
            style={{ transform: `translateY(${start}px)` }}
          >
            <span className="soft number">{index}</span>
            <code>{textOf(values[index])}</code>
          </li>
        ))}
      </ol>
    </div>
  );
}

function textOf(value: Value | undefined): string {
  const text = value?.text ?? JSON.stringify(value?.json) ?? '';
  return visibleText(text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text);
}
