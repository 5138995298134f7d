// Objects whose methods are workflows and steps. Recovery finds an instance by class and name.
import { internals } from '../../kernel/base/internals.js';
import { DBOS, type DBOSInstance } from './dbos.js';

/** Base class of objects with workflow methods. The name must be unique within the class. */
export abstract class ConfiguredInstance {
  readonly name: string;

  constructor(name: string, owner: DBOSInstance = DBOS) {
    this.name = name;
    owner[internals].registerInstance(this, name);
  }

  /** Called at launch, before any workflow is recovered. */
  async initialize(): Promise<void> {}
}
