// A button that opens a list of choices. A click elsewhere and Escape close it.
import { type ReactNode, useEffect, useRef, useState } from 'react';

export interface MenuProps {
  readonly label: ReactNode;
  readonly title: string;
  readonly className?: string;
  /** At which side of the button the list begins. */
  readonly side?: 'start' | 'end';
  /** Stays open while choices are made. */
  readonly isSticky?: boolean;
  readonly children: ReactNode;
}

export function Menu({ label, title, className = 'button', side = 'end', isSticky = false, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const onPress = (event: MouseEvent): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return;
      setOpen(false);
      button.current?.focus();
    };
    document.addEventListener('mousedown', onPress);
    document.addEventListener('keydown', onKey);
    return () => {
      document.removeEventListener('mousedown', onPress);
      document.removeEventListener('keydown', onKey);
    };
  }, [isOpen]);
  return (
    <div className={`menu ${side}`} ref={root}>
      <button
        ref={button}
        type="button"
        className={className}
        aria-haspopup="true"
        aria-expanded={isOpen}
        // A label of words is the name itself.
        aria-label={typeof label === 'string' && /\w/.test(label) ? undefined : title}
        title={title}
        onClick={() => setOpen(!isOpen)}
      >
        {label}
      </button>
      {isOpen && (
        <div className="menu-items" role="group" aria-label={title} onClick={() => !isSticky && setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}
