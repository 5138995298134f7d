// Results and errors, shown where the action was.
import type { ReactNode } from 'react';
import { APIError } from '../api/client';
import { visibleText } from './format';

export function messageOf(error: unknown): string {
  return visibleText(error instanceof Error ? error.message : String(error)).slice(0, 2000);
}

export function Failure({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  if (error === null || error === undefined) return null;
  const code = error instanceof APIError ? error.code : undefined;
  return (
    <div className="notice bad" role="alert">
      <span>
        {messageOf(error)} {code !== undefined && <code className="soft">{code}</code>}
      </span>
      {onRetry && (
        <button type="button" className="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** What a list says when it has nothing to show. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="loading-row">
          <div className="skeleton" />
        </div>
      ))}
    </div>
  );
}
