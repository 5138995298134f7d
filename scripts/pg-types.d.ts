// The types of `pg` that our declarations name, as far as we use them. Projects without @types/pg can check our
// declarations, and those with it can pass their pools and configurations. The build copies this file.
declare namespace pg {
  interface ClientConfig {
    user?: string;
    database?: string;
    password?: string | (() => string | Promise<string>);
    port?: number;
    host?: string;
    connectionString?: string;
    keepAlive?: boolean;
    keepAliveInitialDelayMillis?: number;
    stream?: unknown;
    statement_timeout?: false | number;
    lock_timeout?: number;
    query_timeout?: number;
    idle_in_transaction_session_timeout?: number;
    connectionTimeoutMillis?: number;
    application_name?: string;
    fallback_application_name?: string;
    client_encoding?: string;
    options?: string;
    types?: unknown;
    ssl?: boolean | object;
    enableChannelBinding?: boolean;
  }

  interface PoolConfig extends ClientConfig {
    max?: number;
    min?: number;
    idleTimeoutMillis?: number;
    maxUses?: number;
    maxLifetimeSeconds?: number;
    allowExitOnIdle?: boolean;
    log?: (...messages: never[]) => void;
    Promise?: unknown;
  }

  interface ClientBase {
    query(text: string, values?: never): Promise<unknown>;
  }

  // A class, because one of ours extends it.
  class Client implements ClientBase {
    constructor(config?: string | ClientConfig);
    query(text: string, values?: never): Promise<unknown>;
    connect(): Promise<unknown>;
    connect(callback: never): void;
    end(): Promise<void>;
    end(callback: never): void;
  }

  interface Pool {
    readonly totalCount: number;
    readonly idleCount: number;
    readonly waitingCount: number;
    readonly options?: unknown;
    connect(): Promise<unknown>;
    query(text: string, values?: never): Promise<unknown>;
    end(): Promise<void>;
  }
}

export default pg;
export import Client = pg.Client;
export import ClientBase = pg.ClientBase;
export import ClientConfig = pg.ClientConfig;
export import Pool = pg.Pool;
export import PoolConfig = pg.PoolConfig;
