// Who looks, and what they may do. Where the application has its own authentication there is nothing to log in to.
import { queryOptions, useQueryClient, useSuspenseQuery } from '@tanstack/react-query';
import { api, type Schemas, setCSRF, unwrap } from './client';
import { keys } from './queries';

export interface Session {
  readonly isAuthenticated: boolean;
  readonly isReadOnly: boolean;
  /** Whether there is a session that could be ended. */
  readonly hasLogin: boolean;
  readonly applicationName: string | null;
  readonly version: string | null;
  readonly dialect: string | null;
}

const TOKEN = /^#token=(.+)$/;

/** The login by the token in the link, while it is in flight. */
let loggingIn: Promise<Session> | undefined;

export const session = queryOptions({
  queryKey: keys.session,
  queryFn: async ({ signal }): Promise<Session> => {
    const token = TOKEN.exec(location.hash)?.[1];
    if (token !== undefined) loggingIn = logInOnce(token).finally(() => (loggingIn = undefined));
    // A second look at the session would be sent without the cookie, and its answer would end in the login page.
    return loggingIn ?? read(await unwrap(api.GET('/session', { signal })));
  },
  staleTime: 60_000,
});

/** The command line opens the browser with a token in the fragment, which is never sent to a server or logged. */
async function logInOnce(token: string): Promise<Session> {
  history.replaceState(history.state, '', location.pathname + location.search);
  try {
    return await logIn(decodeURIComponent(token));
  } catch {
    // Used before, or mistyped: the login page says more.
    return read(await unwrap(api.GET('/session')));
  }
}

export async function logIn(token: string): Promise<Session> {
  return read(await unwrap(api.POST('/session', { body: { token } })));
}

function read({ authenticated, readOnly, csrf, version, dialect, appName }: Schemas['Session']): Session {
  setCSRF(csrf ?? undefined);
  return {
    isAuthenticated: authenticated,
    isReadOnly: readOnly,
    hasLogin: csrf !== null,
    applicationName: appName,
    version,
    dialect,
  };
}

export function useSession(): Session {
  return useSuspenseQuery(session).data;
}

export function useLogout(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    await unwrap(api.DELETE('/session'));
    // Nothing that was read may be shown to the next person.
    client.clear();
    await client.refetchQueries({ queryKey: keys.session });
    location.reload();
  };
}
