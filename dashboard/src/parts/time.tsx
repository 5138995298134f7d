// Times that are relative on the screen, absolute on hover, and that go on by themselves.
import { useSyncExternalStore } from 'react';
import { formatDuration, formatRelative, formatTime } from './format';

const listeners = new Set<() => void>();
let now = Date.now();
let timer: number | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= window.setInterval(() => {
    if (document.hidden) return;
    now = Date.now();
    for (const one of listeners) one();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    window.clearInterval(timer);
    timer = undefined;
  };
}

/** The present time, to the second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** For what is over and shows no running time. */
export function useNowIf(isNeeded: boolean): number {
  return useSyncExternalStore(isNeeded ? subscribe : never, () => (isNeeded ? now : 0));
}

function never(): () => void {
  return () => {};
}

export function Time({ at }: { at: number }) {
  const present = useNow();
  return (
    <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
      {formatRelative(at, Math.max(present, Date.now()))}
    </time>
  );
}

export function Duration({ from, to }: { from: number; to?: number | undefined }) {
  const present = useNowIf(to === undefined);
  return (
    <span title={`${formatTime(from)}${to === undefined ? '' : ` – ${formatTime(to)}`}`}>
      {formatDuration((to ?? Math.max(present, from)) - from)}
    </span>
  );
}
