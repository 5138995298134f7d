// Light, dark, or as the system has it. Kept in this browser.
import { useState } from 'react';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'everstep-theme';
const NEXT: Readonly<Record<Theme, Theme>> = { system: 'light', light: 'dark', dark: 'system' };

export function applyStoredTheme(): void {
  apply(storedTheme());
}

export function useTheme(): { theme: Theme; next: () => void } {
  const [theme, setTheme] = useState(storedTheme);
  const next = (): void => {
    const chosen = NEXT[theme];
    try {
      localStorage.setItem(KEY, chosen);
    } catch {
      // Storage may be forbidden; the choice then lasts as long as the page.
    }
    apply(chosen);
    setTheme(chosen);
  };
  return { theme, next };
}

function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
  window.dispatchEvent(new Event('everstep-theme'));
}

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch {
    // Storage may be forbidden.
    return 'system';
  }
}
