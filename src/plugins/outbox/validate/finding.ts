// What a check of the schema finds.

export interface Finding {
  readonly code:
    | 'missing_table'
    | 'missing_column'
    | 'wrong_type'
    | 'wrong_nullability'
    | 'wrong_default'
    | 'foreign_column'
    | 'wrong_primary_key'
    | 'missing_index'
    | 'wrong_index'
    | 'invalid_index'
    | 'missing_check'
    | 'missing_privilege'
    | 'missing_partition'
    | 'autovacuum';
  /** A `warning` does not make the check fail. */
  readonly severity: 'error' | 'warning';
  /** What it is about: a table, or a column or index of one. */
  readonly object: string;
  readonly expected: string;
  readonly actual: string;
  /** Run it, and the finding is gone. Empty if only you can decide. */
  readonly fixSql: string;
}

/** Types, defaults and predicates as they compare: without case, quotes, casts, white space and outer parentheses. */
export function normalized(text: string | null | undefined): string {
  let result = (text ?? '')
    .toLowerCase()
    .replace(/"/g, '')
    .replace(/::\w+(?: \w+)*(?:\(\d+\))?(?:\[\])?/g, '')
    .replace(/\s+/g, '');
  const isWrapped = (): boolean => {
    if (!result.startsWith('(') || !result.endsWith(')')) return false;
    let depth = 0;
    for (const [index, character] of [...result].entries()) {
      if (character === '(') depth += 1;
      if (character === ')') depth -= 1;
      if (depth === 0 && index < result.length - 1) return false;
    }
    return true;
  };
  while (isWrapped()) result = result.slice(1, -1);
  return result;
}
