// The event stream keeps what is on the screen up to date. Rows of a list are patched in place; everything else is read
// again, at most once a second. A hidden page closes the stream, so that the database has nothing to do for it.
import type { InfiniteData, QueryClient } from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { apiURL, type Schemas, type Workflow } from './client';
import { keys } from './queries';

export type Connection = 'connecting' | 'live' | 'lost';
type Page = Schemas['WorkflowPage'];
type Changed = Pick<Workflow, 'workflowID' | 'status' | 'workflowName'>;

const REFRESH_MS = 1000;
const RECONNECT_MS = 2000;
/** Reading more pages again for each change would cost more than it tells. */
const LIVE_PAGES_MAX = 3;

class Live {
  #client: QueryClient | undefined;
  #source: EventSource | undefined;
  #connection: Connection = 'connecting';
  readonly #listeners = new Set<() => void>();
  readonly #stale = new Map<string, readonly unknown[]>();
  #refreshTimer: number | undefined;
  #reconnectTimer: number | undefined;

  start(client: QueryClient): () => void {
    this.#client = client;
    const look = (): void => (document.hidden ? this.#close() : this.#open());
    document.addEventListener('visibilitychange', look);
    window.addEventListener('online', look);
    look();
    return () => {
      document.removeEventListener('visibilitychange', look);
      window.removeEventListener('online', look);
      this.#close();
    };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  connection = (): Connection => this.#connection;

  #open(): void {
    if (this.#source && this.#source.readyState !== EventSource.CLOSED) return;
    this.#close();
    const source = new EventSource(`${apiURL}/events`, { withCredentials: true });
    this.#source = source;
    source.onopen = () => this.#onOpen();
    source.onerror = () => this.#onError(source);
    source.addEventListener('workflow', ({ data }) => this.#onWorkflow(JSON.parse(String(data)) as Changed));
    source.addEventListener('workflow-deleted', () => this.#refresh(keys.lists));
    source.addEventListener('queue', () => this.#refresh(keys.queues));
    source.addEventListener('queue-deleted', () => this.#refresh(keys.queues));
    source.addEventListener('refresh', () => this.#refresh([]));
  }

  #close(): void {
    window.clearTimeout(this.#reconnectTimer);
    this.#source?.close();
    this.#source = undefined;
  }

  #onOpen(): void {
    // The stream does not tell what happened before it was opened.
    if (this.#connection !== 'connecting') this.#refresh([]);
    this.#set('live');
  }

  #onError(source: EventSource): void {
    this.#set('lost');
    // Browsers reconnect after a broken connection, but not after a refusal.
    if (source.readyState !== EventSource.CLOSED) return;
    // The session may have ended.
    void this.#client?.invalidateQueries({ queryKey: keys.session });
    this.#reconnectTimer = window.setTimeout(() => this.#open(), RECONNECT_MS);
  }

  #set(connection: Connection): void {
    this.#connection = connection;
    for (const listener of this.#listeners) listener();
  }

  #onWorkflow(changed: Changed): void {
    const isListed = this.#patchLists(changed);
    if (!isListed) this.#refresh(keys.lists);
    this.#refresh(keys.workflow(changed.workflowID));
    // Not their settings.
    this.#refresh([...keys.queues, 'stats']);
    this.#refresh([...keys.queues, 'details']);
    this.#refresh(keys.overview);
  }

  /** Whether all lists on the screen had it already. */
  #patchLists(changed: Changed): boolean {
    const found = this.#client?.getQueriesData<InfiniteData<Page>>({ queryKey: keys.lists, type: 'active' }) ?? [];
    let isListed = true;
    for (const [key, data] of found) {
      if (!data?.pages) continue;
      const patched = patchPages(data.pages, changed);
      if (patched) this.#client?.setQueryData(key, { ...data, pages: patched });
      else isListed = false;
    }
    return isListed;
  }

  #refresh(key: readonly unknown[]): void {
    this.#stale.set(JSON.stringify(key), key);
    this.#refreshTimer ??= window.setTimeout(() => {
      this.#refreshTimer = undefined;
      const stale = [...this.#stale.values()];
      this.#stale.clear();
      const predicate = ({ state }: { state: { data?: unknown } }): boolean => pagesOf(state.data) <= LIVE_PAGES_MAX;
      for (const queryKey of stale) {
        void this.#client?.invalidateQueries({ queryKey, predicate }, { cancelRefetch: false });
      }
    }, REFRESH_MS);
  }
}

/** Undefined if no page has it. */
export function patchPages(pages: readonly Page[], changed: Changed): Page[] | undefined {
  const isIn = (page: Page): boolean => page.workflows.some(({ workflowID }) => workflowID === changed.workflowID);
  if (!pages.some(isIn)) return undefined;
  // The event has null for what the list leaves out.
  const fields = Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== null));
  const patch = (row: Workflow): Workflow => (row.workflowID === changed.workflowID ? { ...row, ...fields } : row);
  return pages.map((page) => (isIn(page) ? { ...page, workflows: page.workflows.map(patch) } : page));
}

function pagesOf(data: unknown): number {
  return (data as Partial<InfiniteData<unknown>> | undefined)?.pages?.length ?? 0;
}

export const live = new Live();

export function useConnection(): Connection {
  return useSyncExternalStore(live.subscribe, live.connection);
}
