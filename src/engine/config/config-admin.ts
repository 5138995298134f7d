// Resolves the configuration of the admin server.
import { randomUUID } from 'node:crypto';
import type { DLogger } from '../../base/log.js';
import { DBOSInitializationError } from '../../model/errors/errors.js';
import type { CheckedConfig, EngineConfig, Variable } from './config.js';

type AdminConfig = Pick<EngineConfig, 'runAdminServer' | 'adminPort' | 'adminHost' | 'adminToken' | 'adminOpen'>;

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
  const fromEnvironment = variable('EVERSTEP_ADMIN_TOKEN');
  const givenToken = isFromFile ? (fromEnvironment ?? given.adminToken) : (given.adminToken ?? fromEnvironment);
  const isLoopback = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(adminHost);
  if (runAdminServer && givenToken === undefined && !isLoopback) {
    throw new DBOSInitializationError(
      'The admin server needs a token: set adminToken, or EVERSTEP_ADMIN_TOKEN in the environment. ' +
        'On an address of this machine only, it does without.',
    );
  }
  const isOpen = adminOpen && isLoopback && givenToken === undefined;
  const adminToken = givenToken ?? (runAdminServer && !isOpen ? generatedToken(logger) : undefined);
  // A token, once set, is always required.
  return { runAdminServer, adminPort, adminHost, adminToken, adminOpen: isOpen };
}

function generatedToken(logger: DLogger): string {
  const token = randomUUID();
  logger.warn(
    `The admin server has no token. Until the next launch it takes ${token}. ` +
      'Set adminToken, or EVERSTEP_ADMIN_TOKEN in the environment.',
  );
  return token;
}
