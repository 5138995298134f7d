// Rows that are selected, and the row that the keys act on.
import { useState } from 'react';
import type { Workflow } from '../api/client';

export interface Selection {
  readonly ids: ReadonlySet<string>;
  readonly toggle: (workflowID: string) => void;
  readonly setAll: (workflowIDs: readonly string[]) => void;
  readonly clear: () => void;
}

export function useSelection(): Selection {
  const [ids, setIDs] = useState<ReadonlySet<string>>(new Set());
  return {
    ids,
    toggle: (workflowID) =>
      setIDs((before) => {
        const next = new Set(before);
        if (!next.delete(workflowID)) next.add(workflowID);
        return next;
      }),
    setAll: (workflowIDs) => setIDs(new Set(workflowIDs)),
    clear: () => setIDs(new Set()),
  };
}

/** What an action names: the only workflow, or how many of which. */
export function describe(rows: readonly Pick<Workflow, 'workflowID' | 'workflowName'>[], count: number): string {
  if (count === 1 && rows[0]) return `workflow ${rows[0].workflowID}`;
  const names = new Set(rows.map(({ workflowName }) => workflowName));
  const [name] = names;
  const suffix = names.size === 1 && name !== undefined && rows.length === count ? ` of ${name}` : '';
  return `${count.toLocaleString('en')} workflows${suffix}`;
}
