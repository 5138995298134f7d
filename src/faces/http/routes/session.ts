// Routes with which a browser logs in and out. They need no token, because they give access or say that there is none.
import { LIBRARY_VERSION } from '../../../kernel/base/version.js';
import { boolean, integer, nullable, oneOf, record, string } from '../../../kernel/check/validation.js';
import { type Access, forbidden, isFromElsewhere } from '../http/access.js';
import { emptyResponse, jsonResponse } from '../http/response.js';
import { type Call, type Route, route } from '../http/route.js';
import { text } from '../shape.js';

const tag = 'Session';
const TOKEN_MAX = 10_000;

const sessionView = record({
  authenticated: boolean,
  readOnly: boolean.about('Changes are refused.'),
  csrf: nullable(text.about('Send it as `x-everstep-csrf` with changes. Null without a session: no header is needed.')),
  expiresAt: nullable(integer().about('When the session ends. Null without one.')),
  version: nullable(text.about('Of Everstep. This and the following are null until you are authenticated.')),
  dialect: nullable(oneOf(['postgres', 'sqlite'])),
  appName: nullable(text),
}).named('Session');

function viewSession({ operator }: Pick<Call, 'operator'>, access: Access | undefined): object {
  const session = access?.session;
  return {
    authenticated: access !== undefined,
    readOnly: access?.role !== 'full',
    csrf: session?.csrf ?? null,
    expiresAt: session?.expiresAt ?? null,
    version: access ? LIBRARY_VERSION : null,
    dialect: access ? operator.database.dialect.name : null,
    appName: access ? operator.applicationName : null,
  };
}

export const SESSION_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/session',
    tag,
    summary: 'Says whether the request is authenticated, and what it may do.',
    isPublic: true,
    result: sessionView,
    handle: async (call) => viewSession(call, call.access),
  }),
  route({
    method: 'POST',
    path: '/session',
    tag,
    summary: 'Logs a browser in with a token. The answer sets a cookie for 12 hours.',
    isPublic: true,
    body: record({ token: string({ min: 1, max: TOKEN_MAX }) }),
    result: sessionView,
    async handle(call) {
      const { environment, operator, request, address, body } = call;
      // Where nothing has to be proven there is no session to begin.
      if (environment.access.isOpen) return viewSession(call, call.access);
      if (isFromElsewhere(request.headers)) throw forbidden('Cross-site requests are refused.');
      const { session, cookie } = environment.access.sessions.logIn(body.token, request, {
        clock: operator.clock,
        address,
      });
      const access = { role: environment.access.limit(session.role), session };
      return jsonResponse(viewSession(call, access), 200, { 'set-cookie': cookie });
    },
  }),
  route({
    method: 'DELETE',
    path: '/session',
    tag,
    summary: 'Logs the browser out.',
    isPublic: true,
    async handle({ environment, request }) {
      if (isFromElsewhere(request.headers)) throw forbidden('Cross-site requests are refused.');
      return emptyResponse(204, { 'set-cookie': environment.access.sessions.logOut(request) });
    },
  }),
];
