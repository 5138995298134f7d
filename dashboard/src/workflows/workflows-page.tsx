// The list of workflows: pages by keyset, only the rows in view in the document.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import type { Workflow } from '../api/client';
import { workflowList } from '../api/queries';
import { Page } from '../frame/frame';
import { usePageSearch } from '../frame/searches';
import { useKeys } from '../frame/keys';
import { Empty, Failure, Loading } from '../parts/notice';
import { BulkBar } from './bulk';
import { FilterBar } from './filter-bar';
import { type ListSearch, toQuery } from './filters';
import { WorkflowRow } from './row';
import { type Selection, useSelection } from './selection';

const ROW_HEIGHT = 32;
const NARROW_HEIGHT = 52;

export function WorkflowsPage(): ReactNode {
  const search = usePageSearch('/workflows');
  // A span counts back from when it was chosen. A moving start would make every render a new query.
  const query = useMemo(() => toQuery(search, Date.now()), [search]);
  const list = useInfiniteQuery(workflowList(query));
  const rows = useMemo(() => list.data?.pages.flatMap((page) => page.workflows) ?? [], [list.data]);
  const selection = useSelection();
  const [cursor, setCursor] = useState(-1);
  const scroller = useRef<HTMLDivElement>(null);
  return (
    <Page title="Workflows">
      <div className="list-page">
        <FilterBar search={search} query={query} />
        <BulkBar rows={rows} query={query} selection={selection} current={rows[cursor]} />
        {list.error && (
          <div className="page-body">
            <Failure error={list.error} onRetry={() => void list.refetch()} />
          </div>
        )}
        {list.isPending && <Loading rows={12} />}
        {list.data && rows.length === 0 && <NoWorkflows search={search} />}
        {rows.length > 0 && (
          <div className="list" ref={scroller} data-stale={list.isPlaceholderData}>
            <ListHead rows={rows} selection={selection} />
            <Rows
              rows={rows}
              selection={selection}
              scroller={scroller}
              cursor={cursor}
              setCursor={setCursor}
              onEnd={() => {
                if (list.hasNextPage && !list.isFetchingNextPage) void list.fetchNextPage();
              }}
            />
          </div>
        )}
      </div>
    </Page>
  );
}

function ListHead({ rows, selection }: { rows: readonly Workflow[]; selection: Selection }) {
  const isAll = rows.every(({ workflowID }) => selection.ids.has(workflowID));
  return (
    <div className="list-head list-grid">
      <input
        type="checkbox"
        aria-label="Select all loaded rows"
        checked={isAll}
        onChange={() => (isAll ? selection.clear() : selection.setAll(rows.map(({ workflowID }) => workflowID)))}
      />
      <span>State</span>
      <span>Name</span>
      <span>ID</span>
      <span className="number">Time</span>
      <span className="cell-queue">Queue</span>
      <span className="cell-executor">Executor</span>
      <span className="cell-detail number">Created</span>
    </div>
  );
}

interface RowsProps {
  readonly rows: readonly Workflow[];
  readonly selection: Selection;
  readonly scroller: RefObject<HTMLDivElement | null>;
  readonly cursor: number;
  readonly setCursor: (index: number) => void;
  readonly onEnd: () => void;
}

function Rows({ rows, selection, scroller, cursor, setCursor, onEnd }: RowsProps) {
  const navigate = useNavigate();
  const isNarrow = useIsNarrow();
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (isNarrow ? NARROW_HEIGHT : ROW_HEIGHT),
    overscan: 12,
    getItemKey: (index) => rows[index]?.workflowID ?? index,
  });
  useEffect(() => virtual.measure(), [virtual, isNarrow]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 20) onEnd();
  }, [last, rows.length, onEnd]);
  const move = (by: number): void => {
    const next = Math.min(rows.length - 1, Math.max(0, cursor + by));
    setCursor(next);
    virtual.scrollToIndex(next);
  };
  const open = (): void => {
    const row = rows[cursor];
    if (row) void navigate({ to: '/workflows/$workflowID', params: { workflowID: row.workflowID } });
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    o: open,
    x: () => rows[cursor] && selection.toggle(rows[cursor].workflowID),
  });
  return (
    <ul className="list-rows" style={{ height: virtual.getTotalSize() }} aria-label="Workflows">
      {items.map(({ index, start, size }) => {
        const row = rows[index];
        return (
          row && (
            <WorkflowRow
              key={row.workflowID}
              row={row}
              top={start}
              height={size}
              isCurrent={index === cursor}
              isSelected={selection.ids.has(row.workflowID)}
              onToggle={() => selection.toggle(row.workflowID)}
            />
          )
        );
      })}
    </ul>
  );
}

function NoWorkflows({ search }: { search: ListSearch }) {
  const isFiltered = Object.keys(search).some((key) => key !== 'order');
  if (isFiltered) {
    return (
      <Empty title="No workflow matches.">
        <Link to="/workflows" search={{}} className="button">
          Remove all filters
        </Link>
      </Empty>
    );
  }
  return (
    <Empty title="No workflow has run yet.">
      <p>Start one in your application, and it appears here:</p>
      <pre>
        {
          "const greet = DBOS.registerWorkflow(async (name: string) => `Hello ${name}`, { name: 'greet' });\nawait greet('world');"
        }
      </pre>
    </Empty>
  );
}

function useIsNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia('(max-width: 639px)').matches);
  useEffect(() => {
    const media = matchMedia('(max-width: 639px)');
    const listen = (): void => setNarrow(media.matches);
    media.addEventListener('change', listen);
    return () => media.removeEventListener('change', listen);
  }, []);
  return isNarrow;
}
