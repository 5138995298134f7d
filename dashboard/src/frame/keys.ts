// Keys, and sequences such as `g w`. They do nothing while someone types, or while a dialog is open.
import { useEffect, useLayoutEffect, useRef } from 'react';

export type KeyMap = Readonly<Record<string, (event: KeyboardEvent) => void>>;

/** Whether the last key was `g`, which waits for another one. */
let isPrefixed = false;

export function useKeys(map: KeyMap): void {
  const latest = useRef(map);
  // Before the next key: an effect that waits for the paint may come after it.
  useLayoutEffect(() => {
    latest.current = map;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const action = latest.current[isPrefixed ? `g ${event.key}` : event.key];
      if (!action) return;
      event.preventDefault();
      action(event);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

/** Remembers `g`, after the handlers of this key have run. */
export function useKeySequences(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      isPrefixed = event.key === 'g' && !isTyping(event.target) && !event.ctrlKey && !event.metaKey;
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (document.querySelector('dialog[open]')) return true;
  const isText = target instanceof HTMLInputElement && target.type !== 'checkbox';
  return isText || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export const KEY_HELP: readonly (readonly [string, string])[] = [
  ['g o', 'Overview'],
  ['g w', 'Workflows'],
  ['g q', 'Queues'],
  ['g s', 'Schedules'],
  ['g b', 'Outbox and dead letters'],
  ['g e', 'Executors and versions'],
  ['g r', 'Retention and archive'],
  ['g t', 'Settings'],
  ['/', 'Search by ID'],
  ['j  k', 'Next and previous row'],
  ['o  Enter', 'Open'],
  ['x', 'Select'],
  ['c', 'Cancel'],
  ['r', 'Resume'],
  ['f', 'Fork'],
  ['+  -', 'Zoom the timeline'],
  ['Esc', 'Close, or clear the selection'],
  ['?', 'This help'],
];
