// What can be done with a row of a table: a button if it is one thing, else a menu. Errors appear beside it, and a
// read-only session gets nothing.
import type { QueryKey } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { useSession } from '../api/session';
import { useChange } from './changes';
import { visibleText } from './format';
import { Menu } from './menu';
import { Failure } from './notice';

export type RowAction = { readonly label: string; readonly isDangerous?: boolean } & (
  | {
      /** Makes a change at once. */
      readonly act: () => Promise<unknown>;
    }
  | {
      /** Asks first. */
      readonly dialog: (onClose: () => void) => ReactNode;
    }
);

interface RowActionsProps {
  /** What the row is about, for those who do not see it. */
  readonly subject: string;
  readonly actions: readonly RowAction[];
  /** What to read again after a change. */
  readonly stale: readonly QueryKey[];
}

export function RowActions({ subject, actions, stale }: RowActionsProps) {
  const { isReadOnly } = useSession();
  const [asking, setAsking] = useState<string | undefined>(undefined);
  const change = useChange((act: () => Promise<unknown>) => act(), ...stale);
  const [first] = actions;
  if (isReadOnly || !first) return null;
  const press = (action: RowAction): void => ('act' in action ? change.mutate(action.act) : setAsking(action.label));
  const asked = actions.find(({ label }) => label === asking);
  return (
    <>
      {actions.length === 1 ? (
        <button
          type="button"
          className={`button ${first.isDangerous ? 'danger' : ''}`}
          disabled={change.isPending}
          aria-label={`${first.label} ${visibleText(subject)}`}
          onClick={() => press(first)}
        >
          {first.label}
        </button>
      ) : (
        <Menu label="⋯" title={`Actions on ${visibleText(subject)}`}>
          {actions.map((action) => (
            <button
              key={action.label}
              type="button"
              className={action.isDangerous ? 'danger' : ''}
              disabled={change.isPending}
              onClick={() => press(action)}
            >
              {action.label}
            </button>
          ))}
        </Menu>
      )}
      <Failure error={change.error} />
      {asked && 'dialog' in asked && asked.dialog(() => setAsking(undefined))}
    </>
  );
}
