// Creator tokens: `workflow_status.creator_xid` identifies the call that created a row. If an ID is used again after its
// workflow was deleted, the new workflow has another creator. Completion records carry the token, so that no workflow
// takes an earlier one's records for its own.

const IMPORTED = 'import-';
const REWOUND = /^rewind-(\d+)(?:\.(\d+))?-/;
const CONTINUED = /^continue-(\d+)-/;

export function importCreator(token: string): string {
  return `${IMPORTED}${token}`;
}

/** Whether the workflow was imported. Others of its export may not be there yet. */
export function isImported(creator: string): boolean {
  return creator.startsWith(IMPORTED);
}

/** A rewound workflow keeps its steps before `startStep`. */
export function rewindCreator(startStep: number, token: string): string {
  return `rewind-${startStep}-${token}`;
}

/** The creator of a rewound row, which keeps count of how often the workflow has continued as new. */
export function afterRewind(rewound: string, creatorBefore: string | null): string {
  const continuations = continuationsOf(creatorBefore ?? '');
  return continuations === 0 ? rewound : rewound.replace(/\d+/, `$&.${continuations}`);
}

/** Of a workflow that continues as new: how often it has, and a token. */
export function continuedCreator(creator: string, token: string): string {
  return `continue-${continuationsOf(creator) + 1}-${token}`;
}

/** How often the workflow has continued as new. */
export function continuationsOf(creator: string): number {
  return Number(CONTINUED.exec(creator)?.[1] ?? REWOUND.exec(creator)?.[2] ?? 0);
}

/** The creator of a row. Rows of other programs may have no token; their creation time has to do. */
export function creatorOf({
  creator,
  createdAt,
}: {
  readonly creator: string | null;
  readonly createdAt: number;
}): string {
  return creator ?? `@${createdAt}`;
}

/** Whether the step may have been run under another creator: before an export, or before a rewind to a later step. */
export function inheritsStep(creator: string, stepID: number): boolean {
  if (isImported(creator)) return true;
  const [, startStep] = REWOUND.exec(creator) ?? [];
  return startStep !== undefined && stepID < Number(startStep);
}
