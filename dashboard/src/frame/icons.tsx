// Icons of the side bar, drawn with lines of the text's colour.
const PATHS = {
  overview: 'M2 13V8m4 5V3m4 10V6m4 7V9',
  workflows: 'M2 4h5v3H2zM9 9h5v3H9zM4.5 7v3.5H9',
  queues: 'M2 4h12M2 8h12M2 12h7',
  schedules: 'M8 4.5V8l2.5 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0z',
  outbox: 'M2 9v4h12V9h-3.5l-1 2h-3l-1-2zM8 2v6m-2.5-3.5L8 2l2.5 2.5',
  executors: 'M3 3h10v4H3zM3 9h10v4H3zM5.5 5h.01M5.5 11h.01',
  retention: 'M2 3h12v3H2zM3 6v7h10V6M6.5 9h3',
  settings: 'M2 5h7m3 0h2M2 11h2m3 0h7M9 3v4M4 9v4',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zm3.5-1.5L14 14',
  theme: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  help: 'M6 6a2 2 0 1 1 2.5 2v1.5M8.5 12h.01',
  logout: 'M6 2H3v12h3m2-6h6m-2.5-2.5L14 8l-2.5 2.5',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#6366f1" />
      <path
        d="M7 24v-5h6v-5h6V9h6"
        fill="none"
        stroke="#fff"
        strokeWidth="3.2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
