// An application with a database, a data source and an outbox in it.
import type { Row } from '../../../src/plugins/transaction/driver.js';
import type { DBOSConfig } from '../../../src/run/config/config.js';
import type { OutboxDataSource } from '../../../src/plugins/outbox/database.js';
import { OutboxBroker } from '../../../src/plugins/outbox/outbox-broker.js';
import type { OutboxOptions } from '../../../src/plugins/outbox/outbox-options.js';
import { wantsDialect } from '../../rig/dialects.js';
import type { AdapterName } from '../transaction/adapters.js';
import { type EngineUnderTest, type Scene, setScene } from '../transaction/scene.js';
import { ALL_TABLES } from './tables.js';

/** One adapter for each dialect, for tests of what the adapters have no part in. */
export const DIALECTS = (
  [
    ['postgres', 'node-postgres'],
    ['sqlite', 'better-sqlite3'],
  ] as const
).filter(([dialect]) => wantsDialect(dialect));

export interface OutboxScene extends EngineUnderTest {
  readonly scene: Scene;
  readonly outbox: OutboxBroker;
  /** Runs a statement on the application's database, apart from all data sources. */
  readonly query: (text: string) => Promise<Row[]>;
  /** Another process of the application. */
  another(config?: Partial<DBOSConfig>, options?: OutboxOptions): Promise<EngineUnderTest & { outbox: OutboxBroker }>;
}

export interface SceneOptions extends OutboxOptions {
  readonly isShared?: boolean;
  readonly isLaunched?: boolean;
  readonly config?: Partial<DBOSConfig>;
}

/** With all tables, unless `options` names some. */
export async function setOutbox(name: AdapterName, options: SceneOptions = {}): Promise<OutboxScene> {
  const { isShared = false, isLaunched = true, config, ...given } = options;
  const tables = { ...ALL_TABLES, ...given };
  const scene = await setScene(name, { isShared });
  const create = async (settings?: Partial<DBOSConfig>, others: OutboxOptions = tables) => {
    const engine = await scene.engine(settings);
    return { ...engine, outbox: new OutboxBroker(sourceOf(engine), others) };
  };
  const first = await create(config);
  await first.outbox.install();
  if (isLaunched) await first.DBOS.launch();
  return { ...first, scene, query: (text) => scene.query(text), another: create };
}

export function sourceOf({ source, unwrapped }: EngineUnderTest): OutboxDataSource {
  // Every adapter is a TransactionalDataSource.
  return (unwrapped ?? source) as unknown as OutboxDataSource;
}

/** The rows of the outbox, in order. */
export async function pending({ query }: Pick<OutboxScene, 'query'>): Promise<Row[]> {
  return query('SELECT * FROM outbox ORDER BY id');
}

export function bodyOf(row: Row | undefined): unknown {
  return JSON.parse(Buffer.from(row?.['payload'] as Uint8Array).toString('utf8'));
}
