// Resolves the configuration of the admin server.
import { DBOSInitializationError } from '../../model/errors/errors.js';
import type { CheckedConfig, EngineConfig, Variable } from './config.js';

type AdminConfig = Pick<EngineConfig, 'runAdminServer' | 'adminPort' | 'adminHost' | 'adminToken' | 'adminOpen'>;

/** Refuses to start a server without a token, unless it only listens on loopback and `adminOpen` is set. */
export function resolveAdmin(given: CheckedConfig, variable: Variable, isFromFile: boolean): AdminConfig {
  const { runAdminServer = false, adminPort = 3001, adminHost = '127.0.0.1', adminOpen = false } = given;
  const fromEnvironment = variable('EVERSTEP_ADMIN_TOKEN');
  const adminToken = isFromFile ? (fromEnvironment ?? given.adminToken) : (given.adminToken ?? fromEnvironment);
  const isOpenOnLoopback = adminOpen && /^(127\.\d+\.\d+\.\d+|::1|localhost)$/.test(adminHost);
  if (runAdminServer && adminToken === undefined && !isOpenOnLoopback) {
    throw new DBOSInitializationError(
      'The admin server needs a token: set adminToken, or EVERSTEP_ADMIN_TOKEN in the environment. ' +
        'On an address of this machine only, adminOpen: true does without.',
    );
  }
  // A token, once set, is always required.
  return { runAdminServer, adminPort, adminHost, adminToken, adminOpen: isOpenOnLoopback && adminToken === undefined };
}
