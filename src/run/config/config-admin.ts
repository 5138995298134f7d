// Resolves the configuration of the admin server.
import { randomUUID } from 'node:crypto';
import type { DLogger } from '../../kernel/base/log.js';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';
import type { CheckedConfig, EngineConfig, Variable } from './config.js';

type AdminConfig = Pick<
  EngineConfig,
  'runAdminServer' | 'adminPort' | 'adminHost' | 'adminToken' | 'adminReadOnlyToken' | 'adminOpen'
>;

/**
 * A server without a token listens on loopback only. It is open if `adminOpen` is set; otherwise it gets a token of its own,
 * which is logged, so that programs that configure the server for DBOS launch.
 */
export function resolveAdmin(
  given: CheckedConfig,
  variable: Variable,
  { isFromFile, logger }: { readonly isFromFile: boolean; readonly logger: DLogger },
): AdminConfig {
  const { runAdminServer = false, adminPort = 3001, adminHost = '127.0.0.1', adminOpen = false } = given;
  const prefer = (own: string | undefined, fromEnvironment: string | undefined): string | undefined =>
    isFromFile ? (fromEnvironment ?? own) : (own ?? fromEnvironment);
  const givenToken = prefer(given.adminToken, variable('EVERSTEP_ADMIN_TOKEN'));
  const adminReadOnlyToken = prefer(given.adminReadOnlyToken, variable('EVERSTEP_ADMIN_READ_ONLY_TOKEN'));
  const isLoopback = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(adminHost);
  if (runAdminServer && givenToken === undefined && !isLoopback) {
    throw new DBOSInitializationError(
      'The admin server needs a token: set adminToken, or EVERSTEP_ADMIN_TOKEN in the environment. ' +
        'On an address of this machine only, it does without.',
    );
  }
  if (adminReadOnlyToken !== undefined && adminReadOnlyToken === givenToken) {
    throw new DBOSInitializationError('adminReadOnlyToken must differ from adminToken, which allows changes.');
  }
  const isOpen = adminOpen && isLoopback && givenToken === undefined && adminReadOnlyToken === undefined;
  const adminToken = givenToken ?? (runAdminServer && !isOpen ? generatedToken(logger) : undefined);
  // A token, once set, is always required.
  return { runAdminServer, adminPort, adminHost, adminToken, adminReadOnlyToken, adminOpen: isOpen };
}

function generatedToken(logger: DLogger): string {
  const token = randomUUID();
  logger.warn(
    `The admin server has no token. Until the next launch it takes ${token}. ` +
      'Set adminToken, or EVERSTEP_ADMIN_TOKEN in the environment.',
  );
  return token;
}
