// An application with decorators. It is compiled and run twice: with the standard decorators and with the older ones of
// TypeScript (see legacy/tsconfig.json). Everything it needs is handed in, so that it imports nothing but types.
import type { ConfiguredInstance as Base, DBOSInstance } from '../../../src/index.js';

export interface Application {
  readonly calls: string[];
  readonly Shop: { order(item: string): Promise<string>; sell(item: string): Promise<string> };
  readonly Bank: { order(): Promise<string>; open(): Promise<string>; look(): Promise<string> };
  readonly Machine: new (name: string) => Base & {
    readonly name: string;
    brew(cups: number): Promise<string>;
    heat(): Promise<string>;
  };
}

/** `halt` is awaited by `Machine.brew` between its steps. */
export function defineApplication(
  DBOS: DBOSInstance,
  ConfiguredInstance: typeof Base,
  halt: () => Promise<void> = async () => {},
): Application {
  const calls: string[] = [];

  @DBOS.className('CornerShop')
  class Shop {
    static readonly city = 'Ulm';

    @DBOS.step()
    static async pack(item: string): Promise<string> {
      calls.push(`pack ${item}`);
      return `packed ${item}`;
    }

    @DBOS.workflow()
    static async order(item: string): Promise<string> {
      return `${await this.pack(item)} in ${this.city}`;
    }

    @DBOS.workflow({ name: 'vend', maxRecoveryAttempts: 3 })
    static async sell(item: string): Promise<string> {
      return `sold ${item}`;
    }
  }

  @DBOS.defaultRequiredRole(['clerk'])
  class Bank {
    @DBOS.workflow()
    static async order(): Promise<string> {
      return `ordered by ${DBOS.assumedRole}`;
    }

    @DBOS.requiredRole(['owner'])
    @DBOS.workflow()
    static async open(): Promise<string> {
      return `opened by ${DBOS.assumedRole}`;
    }

    @DBOS.requiredRole([])
    @DBOS.workflow()
    static async look(): Promise<string> {
      return 'looked';
    }
  }

  class Machine extends ConfiguredInstance {
    constructor(name: string) {
      super(name, DBOS);
    }

    override async initialize(): Promise<void> {
      calls.push(`initialize ${this.name}`);
    }

    @DBOS.step({ retriesAllowed: true })
    async heat(): Promise<string> {
      calls.push(`heat ${this.name}`);
      return `${this.name} is hot`;
    }

    @DBOS.workflow()
    async brew(cups: number): Promise<string> {
      const state = await this.heat();
      await halt();
      return `${cups} cups, ${state}`;
    }
  }

  return { calls, Shop, Bank, Machine };
}

/** Two workflows of one class under one name. */
export function defineDuplicate(DBOS: DBOSInstance): void {
  class Twice {
    @DBOS.workflow({ name: 'same' })
    static async one(): Promise<void> {}

    @DBOS.workflow({ name: 'same' })
    static async two(): Promise<void> {}
  }
  void Twice;
}

/** What the compiler refuses; never called. */
export function defineWrongly(DBOS: DBOSInstance): void {
  class Wrong {
    // @ts-expect-error A workflow is async.
    @DBOS.workflow()
    static close(): string {
      return 'closed';
    }

    // @ts-expect-error A step is async.
    @DBOS.step()
    pack(): number {
      return 1;
    }

    // @ts-expect-error There is no such setting.
    @DBOS.step({ attempts: 3 })
    async sell(): Promise<void> {}
  }
  void Wrong;
}
