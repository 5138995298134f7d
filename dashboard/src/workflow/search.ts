// What the URL of a workflow's page holds: the tab, and the row of the timeline that is open.
export const TABS = [
  'timeline',
  'input',
  'output',
  'steps',
  'messages',
  'streams',
  'tree',
  'history',
  'compare',
] as const;

export type Tab = (typeof TABS)[number];

export interface WorkflowSearch {
  readonly tab?: Tab;
  readonly row?: string;
}

export function readWorkflowSearch(search: Record<string, unknown>): WorkflowSearch {
  const tab = TABS.find((one) => one === search['tab']);
  const row = search['row'];
  return { ...(tab && tab !== 'timeline' && { tab }), ...(typeof row === 'string' && row !== '' && { row }) };
}
