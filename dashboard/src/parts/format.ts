// Times, durations, numbers and sizes as people read them.
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const counts = new Intl.NumberFormat('en');
const dates = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  timeZoneName: 'short',
});

export function formatCount(count: number): string {
  return counts.format(count);
}

/** `1 workflow`, `1,204 workflows`. */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Two units at most: `1.2 s`, `4 min 3 s`, `2 h 5 min`, `3 d 4 h`. */
export function formatDuration(ms: number): string {
  const size = Math.max(0, ms);
  if (size < SECOND) return `${Math.round(size)} ms`;
  if (size < 10 * SECOND) return `${(Math.floor(size / 100) / 10).toFixed(1)} s`;
  if (size < MINUTE) return `${Math.floor(size / SECOND)} s`;
  if (size < HOUR) return pair(Math.floor(size / MINUTE), 'min', Math.floor((size % MINUTE) / SECOND), 's');
  if (size < DAY) return pair(Math.floor(size / HOUR), 'h', Math.floor((size % HOUR) / MINUTE), 'min');
  return pair(Math.floor(size / DAY), 'd', Math.floor((size % DAY) / HOUR), 'h');
}

function pair(big: number, bigUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`;
}

/** The largest unit only: `12 s ago`, `in 2 h`. */
export function formatRelative(at: number, now: number): string {
  const distance = Math.abs(now - at);
  if (distance < SECOND) return 'now';
  const [size, unit] =
    distance < MINUTE
      ? [distance / SECOND, 's']
      : distance < HOUR
        ? [distance / MINUTE, 'min']
        : distance < 2 * DAY
          ? [distance / HOUR, 'h']
          : [distance / DAY, 'd'];
  const text = `${Math.floor(size)} ${unit}`;
  return at <= now ? `${text} ago` : `in ${text}`;
}

/** In the time zone of the reader, to the millisecond. */
export function formatTime(at: number): string {
  return Number.isFinite(at) ? dates.format(at) : '';
}

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

// Bidirectional controls can make a text look like another one; other controls are invisible.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Text from a workflow, with characters that would hide or turn it around made visible. */
export function visibleText(text: string): string {
  return text.replace(HIDDEN, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
