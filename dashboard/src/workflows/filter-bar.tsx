// The filters above the list. Each change is a new URL, so the back button takes it back.
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { Dialog } from '../parts/dialog';
import { formatCount, visibleText } from '../parts/format';
import { Menu } from '../parts/menu';
import { ALL_STATES, State, STATES } from '../parts/state';
import { EXACT_COUNT_MAX, workflowCount, type WorkflowQuery } from '../api/queries';
import {
  chipsOf,
  type Filter,
  FILTERS,
  type ListSearch,
  SPANS,
  type Span,
  statesOf,
  withFilter,
  withoutFilter,
} from './filters';

export function FilterBar({ search, query }: { search: ListSearch; query: WorkflowQuery }) {
  const navigate = useNavigate();
  const [adding, setAdding] = useState<Filter | undefined>(undefined);
  const go = (next: ListSearch): void => void navigate({ to: '/workflows', search: next });
  return (
    <div className="filters" role="toolbar" aria-label="Filters">
      <StateMenu search={search} go={go} />
      <SpanMenu search={search} go={go} />
      {chipsOf(search).map(({ filter, value }) => (
        <span key={`${filter.key}:${value}`} className="chip accent">
          <span className="ellipsis chip-text" title={visibleText(value)}>
            {filter.label} {filter.kind === 'flag' ? value === 'true' ? '' : '= no' : <b>{visibleText(value)}</b>}
          </span>
          <button
            type="button"
            aria-label={`Remove the filter ${filter.label}`}
            onClick={() => go(withoutFilter(search, filter, value))}
          >
            ×
          </button>
        </span>
      ))}
      <Menu label="+ filter" title="Add a filter" side="start" className="button plain">
        {FILTERS.map((filter) => (
          <button
            key={filter.key}
            type="button"
            onClick={() => (filter.kind === 'flag' ? go(withFilter(search, filter, 'true')) : setAdding(filter))}
          >
            {filter.label}
          </button>
        ))}
      </Menu>
      <div className="spread" />
      <button
        type="button"
        className="button plain"
        title="Change the order"
        onClick={() => {
          const { order, ...rest } = search;
          go(order ? rest : { ...search, order: 'oldest' });
        }}
      >
        {search.order === 'oldest' ? 'Oldest first' : 'Newest first'}
      </button>
      <Total query={query} />
      {adding && (
        <AddFilter
          filter={adding}
          onAdd={(value) => go(withFilter(search, adding, value))}
          onClose={() => setAdding(undefined)}
        />
      )}
    </div>
  );
}

function Total({ query }: { query: WorkflowQuery }) {
  const { data } = useQuery(workflowCount(query));
  if (!data) return null;
  return (
    <span className="soft total" title="Workflows that match" data-testid="total">
      {totalText(data)}
    </span>
  );
}

/** Only Postgres has statistics to estimate from. */
function totalText({ count, isEstimate }: { count: number; isEstimate: boolean }): string {
  if (!isEstimate) return formatCount(count);
  return count > EXACT_COUNT_MAX ? `about ${formatCount(count)}` : `${formatCount(count)}+`;
}

interface Part {
  readonly search: ListSearch;
  readonly go: (next: ListSearch) => void;
}

function StateMenu({ search, go }: Part) {
  const chosen = statesOf(search.status);
  const label = chosen.length === 0 ? 'any state' : chosen.map((status) => STATES[status].word).join(', ');
  const toggle = (status: (typeof ALL_STATES)[number]): void => {
    const next = chosen.includes(status) ? chosen.filter((one) => one !== status) : [...chosen, status];
    go({ ...search, status: next });
  };
  return (
    <Menu label={`${label} ▾`} title="Filter by state" side="start" isSticky>
      {ALL_STATES.map((status) => (
        <label key={status}>
          <input type="checkbox" checked={chosen.includes(status)} onChange={() => toggle(status)} />
          <State status={status} />
        </label>
      ))}
    </Menu>
  );
}

function SpanMenu({ search, go }: Part) {
  const { last, ...rest } = search;
  return (
    <Menu label={`${last ? SPANS[last].label : 'any time'} ▾`} title="Filter by the time of creation" side="start">
      <button type="button" onClick={() => go(rest)}>
        any time
      </button>
      {(Object.keys(SPANS) as Span[]).map((span) => (
        <button key={span} type="button" onClick={() => go({ ...rest, last: span })}>
          {SPANS[span].label}
        </button>
      ))}
    </Menu>
  );
}

interface AddFilterProps {
  readonly filter: Filter;
  readonly onAdd: (value: string) => void;
  readonly onClose: () => void;
}

function AddFilter({ filter, onAdd, onClose }: AddFilterProps) {
  const [value, setValue] = useState('');
  const submit = async (): Promise<void> => {
    if (filter.kind === 'json' && !isObject(value))
      throw new Error('Write a JSON object, such as {"customer": "c-17"}.');
    onAdd(filter.kind === 'time' ? new Date(value).toISOString() : value.trim());
  };
  const onInput = ({ currentTarget }: FormEvent<HTMLInputElement>): void => setValue(currentTarget.value);
  return (
    <Dialog
      title={`Filter: ${filter.label}`}
      action="Add"
      isDisabled={value.trim() === ''}
      onSubmit={submit}
      onClose={onClose}
    >
      <label className="line">
        {filter.kind === 'time' ? 'Time, in your time zone' : 'Value'}
        <input
          className="field"
          type={filter.kind === 'time' ? 'datetime-local' : 'text'}
          step="1"
          autoFocus
          placeholder={filter.hint}
          value={value}
          onInput={onInput}
        />
      </label>
    </Dialog>
  );
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    // Not JSON at all.
    return false;
  }
}
