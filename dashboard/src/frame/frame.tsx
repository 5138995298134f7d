// The frame around all pages: navigation, search, connection, and the keys that work everywhere.
import { Link, useNavigate, useRouterState } from '@tanstack/react-router';
import { type FormEvent, type ReactNode, useRef, useState } from 'react';
import { useConnection } from '../api/live';
import { type Session, useLogout } from '../api/session';
import { Help } from './help';
import { Icon, type IconName, Logo } from './icons';
import { useKeys, useKeySequences } from './keys';
import { useTheme } from './theme';

const PAGES = [
  { to: '/', label: 'Overview', icon: 'overview', key: 'g o' },
  { to: '/workflows', label: 'Workflows', icon: 'workflows', key: 'g w' },
  { to: '/queues', label: 'Queues', icon: 'queues', key: 'g q' },
  { to: '/schedules', label: 'Schedules', icon: 'schedules', key: 'g s' },
  { to: '/outbox', label: 'Outbox', icon: 'outbox', key: 'g b' },
  { to: '/executors', label: 'Executors', icon: 'executors', key: 'g e' },
  { to: '/retention', label: 'Retention', icon: 'retention', key: 'g r' },
  { to: '/settings', label: 'Settings', icon: 'settings', key: 'g t' },
] as const satisfies readonly { to: string; label: string; icon: IconName; key: string }[];

export function Frame({ session, children }: { session: Session; children: ReactNode }) {
  const [isHelpOpen, setHelpOpen] = useState(false);
  const navigate = useNavigate();
  useKeySequences();
  useKeys({
    ...Object.fromEntries(PAGES.map(({ to, key }) => [key, () => void navigate({ to })])),
    '?': () => setHelpOpen(true),
  });
  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <SideBar session={session} onHelp={() => setHelpOpen(true)} />
      <div className="main">
        <LostBar />
        {children}
      </div>
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

function SideBar({ session, onHelp }: { session: Session; onHelp: () => void }) {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const { theme, next } = useTheme();
  const logout = useLogout();
  const isCurrent = (to: string): boolean => (to === '/' ? path === '/' : path.startsWith(to));
  return (
    <nav className="side" aria-label="Pages">
      <div className="brand">
        <Logo />
        <span className="brand-words ellipsis">
          <strong>Everstep</strong>
          <span className="soft">{session.applicationName ?? 'all applications'}</span>
        </span>
      </div>
      {PAGES.map(({ to, label, icon, key }) => (
        <Link
          key={to}
          to={to}
          className="side-link"
          title={`${label} (${key})`}
          aria-current={isCurrent(to) ? 'page' : undefined}
        >
          <Icon name={icon} />
          <span>{label}</span>
        </Link>
      ))}
      <div className="spread" />
      {session.isReadOnly && (
        <div className="side-link" title="Changes are not allowed in this session.">
          <span>Read-only</span>
        </div>
      )}
      <button type="button" className="side-link" title={`Colours: ${theme}`} onClick={next}>
        <Icon name="theme" />
        <span>Colours: {theme}</span>
      </button>
      <button type="button" className="side-link" title="Keys (?)" onClick={onHelp}>
        <Icon name="help" />
        <span>Keys</span>
      </button>
      {session.hasLogin && (
        <button type="button" className="side-link" title="Log out" onClick={() => void logout()}>
          <Icon name="logout" />
          <span>Log out</span>
        </button>
      )}
    </nav>
  );
}

function LostBar() {
  const connection = useConnection();
  if (connection !== 'lost') return null;
  return (
    <div className="lost" role="status">
      Connection lost. What you see may be old. Reconnecting…
    </div>
  );
}

/** The head of a page, with the search that all pages have, and its content. */
export function Page({ title, extra, children }: { title: ReactNode; extra?: ReactNode; children: ReactNode }) {
  return (
    <>
      <header className="top">
        <h1 className="ellipsis">{title}</h1>
        {extra}
        <div className="spread" />
        <Search />
        <LiveDot />
      </header>
      <main className="page" id="content" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}

function Search() {
  const navigate = useNavigate();
  const input = useRef<HTMLInputElement>(null);
  useKeys({ '/': () => input.current?.focus() });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? '';
    void navigate({ to: '/workflows', search: text === '' ? {} : { workflowIDPrefix: text } });
    input.current?.blur();
  };
  return (
    <form className="search" role="search" onSubmit={submit}>
      <Icon name="search" size={14} />
      <input
        ref={input}
        className="field"
        type="search"
        placeholder="Workflow ID  /"
        aria-label="Search workflows by the beginning of their ID"
        onKeyDown={({ key, currentTarget }) => key === 'Escape' && currentTarget.blur()}
      />
    </form>
  );
}

function LiveDot() {
  const connection = useConnection();
  return (
    <span className={`live ${connection === 'live' ? 'on' : ''}`} title="Whether changes appear by themselves">
      {connection === 'live' ? 'live' : connection === 'lost' ? 'offline' : 'connecting'}
    </span>
  );
}
