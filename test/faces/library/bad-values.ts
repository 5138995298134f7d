// Wrong values by the kind of value that is wanted, for tests that pass them to every public function.

const strangers: Readonly<Record<string, unknown>> = {
  null: null,
  true: true,
  zero: 0,
  five: 5,
  NaN: NaN,
  Infinity: Infinity,
  bigint: 5n,
  symbol: Symbol('s'),
  function: () => 5,
  'empty string': '',
  string: 'nonsense',
  'string with NUL': 'a\0b',
  'half a surrogate pair': 'a\ud800',
  'long string': 'x'.repeat(5000),
  'empty object': {},
  object: { nonsense: 1 },
  prototype: JSON.parse('{"__proto__": {"a": 1}}') as unknown,
  'empty array': [],
  array: ['a', 5],
  date: new Date(0),
  'invalid date': new Date(NaN),
  buffer: Buffer.from('abc'),
  map: new Map(),
};

const numbers = { '-1': -1, '1.5': 1.5, '1e300': 1e300, '2^31': 2 ** 31, 'number as text': '5' };

type Values = Readonly<Record<string, unknown>>;

function without(values: Values, ...names: string[]): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}

const texts = ['empty string', 'string', 'string with NUL', 'half a surrogate pair', 'long string'];

/** The values that are wrong for a kind. `undefined` is added where the value is required. */
const name = { ...without(strangers, 'string') };
const anyNumber = { ...without(strangers, 'zero', 'five'), 'number as text': '5' };
const count = { ...anyNumber, ...without(numbers, 'number as text') };
const listOfNames = {
  ...without(strangers, 'empty array'),
  'array of null': [null],
  'array of empty': [''],
  'array-like': { length: 1 },
};
const record = without(strangers, 'empty object', 'prototype', 'map', 'date', 'invalid date');

export const WRONG = {
  name,
  optionalName: name,
  names: listOfNames,
  /** Roles may be empty texts. */
  texts: without({ ...strangers, 'array of null': [null] }, 'empty array'),
  /** A filter finds nothing for names that nothing can have. */
  filter: without({ ...strangers, 'array of null': [null] }, 'string', 'empty string', 'long string', 'empty array'),
  /** One of a few words, or a list of them. */
  word: without(strangers, 'empty array'),
  /** A list that may hold empty names, as filters do. */
  nameOrNames: { ...without(strangers, 'string', 'empty array'), 'array of null': [null] },
  /** A number of steps, rows or the like. */
  integer: without(count, 'zero', 'five'),
  positiveInteger: { ...without(count, 'five') },
  count: without(count, 'zero', 'five', '2^31'),
  positiveSafeInteger: without(count, 'five', '2^31'),
  nonNegativeNumber: { ...anyNumber, '-1': -1 },
  positiveNumber: { ...anyNumber, zero: 0, '-1': -1 },
  flag: without(strangers, 'true'),
  callback: without(strangers, 'function'),
  errorClass: without(strangers, 'empty object'),
  list: without(strangers, 'empty array'),
  /** Nothing but the class of value counts: keys are checked one by one. */
  options: without(record, 'object'),
  /** Written as JSON, so that a buffer becomes an object. */
  attributes: without(record, 'object', 'buffer'),
  text: without(strangers, ...texts.filter((text) => !text.includes('NUL') && !text.includes('surrogate'))),
  date: without(strangers, 'date'),
  /** A time in milliseconds. */
  time: { ...anyNumber, '1e300': 1e300 },
  duration: { ...anyNumber, '1e300': 1e300 },
  delay: { ...without(anyNumber, 'empty object', 'object'), '-1': -1, '1e300': 1e300 },
  /** A number of seconds, or options. */
  limit: without(anyNumber, 'empty object', 'object', 'prototype', 'map', 'date', 'invalid date', 'Infinity'),
  /** One of a few words. */
  policy: strangers,
  cron: strangers,
  timeZone: strangers,
  /** A topic or key, which may be empty. */
  key: without(name, 'empty string'),
  source: without(strangers, 'empty array', 'empty string'),
  recipe: without(strangers),
  handles: without(strangers),
  handleList: without(strangers, 'empty array'),
  promises: without(strangers, 'empty array', 'array', 'map', 'string', 'empty string', 'buffer'),
  target: without(strangers),
} as const satisfies Record<string, Values>;

export type Kind = keyof typeof WRONG;
