// An ID or another value that people take elsewhere.
import { type ReactNode, useState } from 'react';
import { visibleText } from './format';

export function Copy({ text, children }: { text: string; children?: ReactNode }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1500);
  };
  return (
    <span className="copy">
      {children ?? <span className="mono ellipsis">{visibleText(text)}</span>}
      <button
        type="button"
        aria-label={isCopied ? 'Copied' : 'Copy'}
        title={isCopied ? 'Copied' : 'Copy'}
        onClick={(event) => {
          event.preventDefault();
          event.stopPropagation();
          void copy();
        }}
      >
        {isCopied ? '✓' : '⧉'}
      </button>
    </span>
  );
}
