// The parameters of registered functions, and their data types, as plugins see them.

export type DBOSFieldType =
  'integer' | 'double' | 'decimal' | 'timestamp' | 'text' | 'varchar' | 'boolean' | 'uuid' | 'json';

/** The type of a parameter. Plugins validate and convert arguments by it. */
export class DBOSDataType {
  dataType: DBOSFieldType = 'text';
  length = -1;
  precision = -1;
  scale = -1;

  static varchar(length: number): DBOSDataType {
    return Object.assign(new DBOSDataType(), { dataType: 'varchar', length });
  }

  static decimal(precision: number, scale: number): DBOSDataType {
    return Object.assign(new DBOSDataType(), { dataType: 'decimal', precision, scale });
  }

  /** The type for a constructor, as `reflect-metadata` names it. */
  static fromArg(type?: unknown): DBOSDataType | undefined {
    if (!type) return undefined;
    return Object.assign(new DBOSDataType(), { dataType: FIELD_TYPES.get(type) ?? 'json' });
  }

  formatAsString(): string {
    if (this.dataType === 'varchar' && this.length > 0) return `varchar(${this.length})`;
    if (this.dataType !== 'decimal' || this.precision <= 0) return this.dataType;
    return this.scale > 0 ? `decimal(${this.precision},${this.scale})` : `decimal(${this.precision})`;
  }
}

const FIELD_TYPES: ReadonlyMap<unknown, DBOSFieldType> = new Map<unknown, DBOSFieldType>([
  [String, 'text'],
  [Date, 'timestamp'],
  [Number, 'double'],
  [Boolean, 'boolean'],
]);

/** What is stored with a parameter under the key `type`. */
export interface ArgDataType {
  dataType?: DBOSDataType;
}

export class MethodParameter {
  name = '';
  readonly externalRegInfo = new Map<unknown, object>();

  constructor(
    readonly index: number,
    type?: unknown,
  ) {
    this.initializeBaseType(type);
  }

  /** The object in which a plugin keeps its data about the parameter. */
  getRegisteredInfo(key: unknown): object {
    return infoIn(this.externalRegInfo, key);
  }

  get dataType(): DBOSDataType | undefined {
    return (this.getRegisteredInfo('type') as ArgDataType).dataType;
  }

  initializeBaseType(type?: unknown): void {
    (this.getRegisteredInfo('type') as ArgDataType).dataType = DBOSDataType.fromArg(type);
  }
}

/** The object under a plugin's key, created on first use. */
export function infoIn(external: Map<unknown, object>, key: unknown): object {
  let info = external.get(key);
  if (!info) external.set(key, (info = {}));
  return info;
}
