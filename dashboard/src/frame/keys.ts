// Keys, and sequences such as `g w`. They do nothing while someone types, or while a dialog is open.
import { useEffect, useRef } from 'react';

export type KeyMap = Readonly<Record<string, (event: KeyboardEvent) => void>>;

const SEQUENCE_MS = 1000;

let first: { readonly key: string; readonly at: number } | undefined;

export function useKeys(map: KeyMap): void {
  const latest = useRef(map);
  useEffect(() => {
    latest.current = map;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const prefix = first && event.timeStamp - first.at < SEQUENCE_MS ? `${first.key} ` : '';
      const action = latest.current[prefix + event.key];
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
      const isStart = event.key === 'g' && !isTyping(event.target) && !event.ctrlKey && !event.metaKey;
      first = isStart ? { key: 'g', at: event.timeStamp } : undefined;
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
