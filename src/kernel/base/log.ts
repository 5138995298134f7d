// The logging interface that users may implement, and the console logger used by default.

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface ContextualMetadata {
  readonly includeContextMetadata?: boolean;
  readonly span?: unknown;
}

export interface StackTrace {
  readonly stack?: string;
  readonly error?: unknown;
}

/** What Everstep logs to. Any object with these four methods will do. */
export interface DLogger {
  info(entry: unknown, metadata?: ContextualMetadata): void;
  debug(entry: unknown, metadata?: ContextualMetadata): void;
  warn(entry: unknown, metadata?: ContextualMetadata): void;
  error(inputError: unknown, metadata?: ContextualMetadata & StackTrace): void;
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

function describe(entry: unknown): string {
  if (typeof entry === 'string') return entry;
  if (entry instanceof Error) return entry.stack ?? `${entry.name}: ${entry.message}`;
  return JSON.stringify(entry) ?? String(entry);
}

/** Writes one line per entry to the console, from `level` up. */
export function consoleLogger(level: LogLevel = 'info'): DLogger {
  const write = (entryLevel: LogLevel, entry: unknown): void => {
    if (LEVELS.indexOf(entryLevel) < LEVELS.indexOf(level)) return;
    console[entryLevel](`${new Date().toISOString()} [${entryLevel}] ${describe(entry)}`);
  };
  return {
    debug: (entry) => write('debug', entry),
    info: (entry) => write('info', entry),
    warn: (entry) => write('warn', entry),
    error: (entry) => write('error', entry),
  };
}

/** Calls a logger of the application as DBOS does: with texts, and errors with their stack. */
export function textLogger(logger: DLogger): DLogger {
  if (logger === silentLogger) return logger;
  const text = (entry: unknown): string =>
    typeof entry === 'string' ? entry : (JSON.stringify(entry) ?? String(entry));
  return {
    debug: (entry, metadata) => logger.debug(text(entry), metadata),
    info: (entry, metadata) => logger.info(text(entry), metadata),
    warn: (entry, metadata) => logger.warn(text(entry), metadata),
    error: (entry, metadata) => {
      if (entry instanceof Error) logger.error(entry.message, { ...metadata, stack: entry.stack, error: entry });
      else logger.error(text(entry), { ...metadata, stack: new Error('logged').stack });
    },
  };
}

/** A logger that drops everything. */
export const silentLogger: DLogger = { debug() {}, info() {}, warn() {}, error() {} };

/** The line that has called the function that asks; empty if it is not known. */
export function callSite(): string {
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, callSite);
  const [, , line = ''] = (holder.stack ?? '').split('\n');
  // What a bundler appends to a module that it loads again.
  return line.trim().replace(/\?[^:)]*/, '');
}

/** The stack of the caller, below a line with the label. */
export function stackHere(label: string): string {
  const holder = new Error(label);
  Error.captureStackTrace(holder, stackHere);
  return holder.stack ?? '';
}
