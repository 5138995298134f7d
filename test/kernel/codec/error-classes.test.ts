// Errors keep their class: in the process that stores them, and in another one that reads them.
import { runInNewContext } from 'node:vm';
import { SuperJSON, type SuperJSONResult } from 'superjson';
import { describe, expect, test } from 'vitest';
import { Codec, type CodecOptions, type Encoded, type ErrorRoundTrip } from '../../../src/kernel/codec/codec.js';
import { type ErrorClasses, KnownErrors } from '../../../src/kernel/codec/error-classes.js';
import {
  DBOSConflictingRegistrationError,
  DBOSMaxStepRetriesError,
  DBOSWorkflowCancelledError,
  PortableWorkflowError,
} from '../../../src/kernel/errors/errors.js';

let processes = 0;

/** A process: what it stores, and what it makes of what is stored. */
function newProcess(registered: ErrorClasses = [], options: CodecOptions = {}) {
  processes += 1;
  const known = new KnownErrors(`process-${processes}`);
  known.register(registered, { site: 'here' });
  const warnings: string[] = [];
  const codec = new Codec(undefined, {
    ...options,
    knownErrors: known,
    warn: (message) => void warnings.push(message),
  });
  return {
    codec,
    known,
    warnings,
    store: (thrown: unknown, errors?: ErrorClasses) => codec.roundTripError(thrown, { errors }) as ErrorRoundTrip,
    read: <E = Error>({ text, serialization }: Encoded, errors?: ErrorClasses) =>
      codec.decodeError(text, serialization, errors) as E,
  };
}

class PaymentError extends Error {
  isTemporary(): boolean {
    return false;
  }
}

class CardDeclined extends PaymentError {
  static made = 0;
  readonly #digits: string;

  constructor(
    readonly amount: number,
    digits: string,
  ) {
    super(`declined: ${amount}`);
    CardDeclined.made += 1;
    this.#digits = digits;
  }

  get digits(): string {
    return this.#digits;
  }

  get isLarge(): boolean {
    return this.amount > 1000;
  }

  describe(): string {
    return `${this.message} (${this.isLarge})`;
  }
}

/** Two classes that only differ in where they stand. */
function twins() {
  const one = (() => {
    class NotFound extends Error {}
    return NotFound;
  })();
  const two = (() => {
    class NotFound extends Error {}
    return NotFound;
  })();
  return [one, two] as const;
}

describe('an error of a class that the application has registered', () => {
  test('is an instance of it, live and in every process, without a call of its constructor', () => {
    const thrown = new CardDeclined(5000, '4711');
    const { made } = CardDeclined;

    const stored = newProcess([CardDeclined]).store(thrown);
    const revived = newProcess([CardDeclined]).read<CardDeclined>(stored);

    for (const copy of [stored.error as CardDeclined, revived]) {
      expect(copy).not.toBe(thrown);
      expect(copy).toBeInstanceOf(CardDeclined);
      expect(copy).toBeInstanceOf(PaymentError);
      expect(copy.constructor).toBe(CardDeclined);
      expect(copy).toMatchObject({ name: 'Error', message: 'declined: 5000', amount: 5000, stack: thrown.stack });
      expect(copy.describe()).toBe('declined: 5000 (true)');
      expect(copy.isTemporary()).toBe(false);
      // The getter reads a private field, which the copy lacks.
      expect(copy.digits).toBe('4711');
      expect(Object.keys(copy)).toEqual(['amount']);
    }
    expect(CardDeclined.made).toBe(made);
  });

  test('is found under the name that it is registered under', () => {
    const [one, two] = twins();
    const register = (): ErrorClasses => [{ 'one.NotFound': one }, { 'two.NotFound': two }];
    const first = newProcess(register());

    const stored = [new one('1'), new two('2')].map((error) => first.store(error));
    const second = newProcess(register());
    const revived = stored.map((one) => second.read(one));

    expect(revived.map((error) => error.constructor)).toEqual([one, two]);
    expect(stored.map(({ error }) => (error as Error).constructor)).toEqual([one, two]);
  });

  test('is also one of its base classes if only those are registered', () => {
    const stored = newProcess([PaymentError]).store(new CardDeclined(1, '1'));

    const revived = newProcess([PaymentError]).read(stored);

    expect(revived).toBeInstanceOf(PaymentError);
    expect((revived as PaymentError).isTemporary()).toBe(false);
    expect(revived.constructor.name).toBe('CardDeclined');
  });

  test('is found by its name if DBOS has stored it', () => {
    const text = '{"json":{"name":"CardDeclined","message":"m","stack":"s"},"__dbos_serializer":"superjson"}';

    expect(newProcess([CardDeclined]).read({ text, serialization: 'js_superjson' })).toBeInstanceOf(CardDeclined);
    expect(newProcess().read({ text, serialization: 'js_superjson' }).constructor).toBe(Error);
  });

  test('is not mixed up with one of another class of that name', () => {
    const [registered] = twins();
    class NotFound extends Error {
      readonly isOther = true;
    }
    const other = NotFound;
    const process = newProcess([registered]);

    const stored = process.store(new other('no'));

    for (const error of [stored.error, process.read(stored), newProcess([registered]).read(stored)])
      expect(error).not.toBeInstanceOf(registered);
    expect(stored.error).toBeInstanceOf(other);
    expect(process.read(stored)).toBeInstanceOf(other);
  });

  test.each([
    ['another class', () => twins(), 'one.ts:1'],
    ['a class of the same text from elsewhere', () => twins(), 'two.ts:1'],
  ])('needs a name of its own, not that of %s', (_, make, site) => {
    const known = new KnownErrors('p');
    const [one] = make();
    class NotFound extends PaymentError {}
    known.register([NotFound], { site: 'one.ts:1' });

    expect(() => known.register([one], { site })).toThrow(DBOSConflictingRegistrationError);
    expect(() => known.register([one], { site })).toThrow(
      `Another class of errors has the name "NotFound": it is registered one.ts:1. ` +
        "Register this one under a name of its own: DBOS.registerErrors({ 'my.NotFound': NotFound }).",
    );
    expect(() => known.register([{ TypeError: NotFound }], { site })).toThrow('it is built in');
  });

  test('may be registered again by its module, which is then loaded again', () => {
    const [old, renewed] = twins();
    const known = new KnownErrors('p');
    known.register([old], { site: 'one.ts:1' });

    known.register([old], { site: 'two.ts:1' });
    known.register([renewed], { site: 'two.ts:1' });
    class NotFound extends PaymentError {}
    known.register([NotFound], { site: 'three.ts:1', isReloadable: true });

    const codec = new Codec(undefined, { knownErrors: known });
    expect((codec.roundTripError(new NotFound('m')) as ErrorRoundTrip).error).toBeInstanceOf(NotFound);
  });
});

test('an error of a class that its step names is an instance of it, in every process', () => {
  class Local extends Error {}
  const classes = (): ErrorClasses => [Local];

  const stored = newProcess().store(new Local('m', { cause: new CardDeclined(1, '2') }), classes());
  const revived = newProcess().read(stored, classes());

  expect(revived.constructor).toBe(Local);
  expect(revived.cause).not.toBeInstanceOf(Local);
});

describe('an error of a class that nobody has registered', () => {
  test('is an instance of it, live and when the process reads it back', () => {
    const process = newProcess();

    const stored = process.store(new CardDeclined(5, '1'));

    for (const copy of [stored.error, process.read(stored)] as CardDeclined[]) {
      expect(copy.constructor).toBe(CardDeclined);
      expect(copy.describe()).toBe('declined: 5 (false)');
    }
  });

  test('is an instance of it in another process when its code asks', () => {
    const stored = newProcess().store(new CardDeclined(5000, '4711'));

    const revived = newProcess().read<CardDeclined>(stored);

    expect(revived.constructor.name).toBe('CardDeclined');
    expect(revived).toMatchObject({ message: 'declined: 5000', amount: 5000 });
    expect([revived.digits, revived.isLarge]).toEqual(['4711', true]);
    expect(revived instanceof TypeError).toBe(false);
    expect(revived instanceof PortableWorkflowError).toBe(false);
    expect(revived instanceof CardDeclined).toBe(true);
    expect(revived.describe()).toBe('declined: 5000 (true)');
  });

  test('is an instance of one that extends a class of ours when its code asks', () => {
    class Mine extends DBOSWorkflowCancelledError {}
    class Other extends DBOSWorkflowCancelledError {
      readonly isOther = true;
    }

    const revived = newProcess().read(newProcess().store(new Mine('w')));

    expect(revived instanceof DBOSWorkflowCancelledError).toBe(true);
    expect(revived instanceof Other).toBe(false);
    expect(revived instanceof Mine).toBe(true);
  });

  test('is an instance of its base class when its code asks, and of its own later', () => {
    const stored = newProcess().store(new CardDeclined(1, '1'));
    const revived = newProcess().read(stored);

    expect(revived instanceof PaymentError).toBe(true);
    expect((revived as PaymentError).isTemporary()).toBe(false);
    expect(revived.constructor.name).toBe('CardDeclined');
    expect(revived instanceof CardDeclined).toBe(true);
    expect(revived.constructor).toBe(CardDeclined);
  });

  test('is none of another class whose name, or whose base class, is another', () => {
    const stored = newProcess().store(new CardDeclined(1, '1'));
    const revived = newProcess().read(stored);
    class Other extends PaymentError {}
    const { CardDeclined: namesake } = { CardDeclined: class CardDeclined extends Error {} };

    expect(revived instanceof Other).toBe(false);
    expect(revived instanceof namesake).toBe(false);
    expect(revived instanceof CardDeclined).toBe(true);
  });

  test('is what another process has thrown itself, without being asked', () => {
    const stored = newProcess().store(new CardDeclined(1, '1'));
    const other = newProcess();
    other.store(new CardDeclined(2, '2'));

    expect(other.read(stored).constructor).toBe(CardDeclined);
  });

  test('is told from one of a class of the same name and text by the process that has thrown both', () => {
    const [one, two] = twins();
    const process = newProcess();

    const stored = [new one('1'), new two('2')].map((error) => process.store(error));

    for (const errors of [stored.map(({ error }) => error), stored.map((one) => process.read(one))]) {
      expect(errors.map((error) => error instanceof one)).toEqual([true, false]);
      expect(errors.map((error) => error instanceof two)).toEqual([false, true]);
    }
  });

  test('is not guessed between two classes that another process has thrown', () => {
    const [one, two] = twins();
    const stored = newProcess().store(new one('1'));
    const other = newProcess();
    for (const type of [one, two]) other.store(new type('x'));

    const revived = other.read(stored);

    expect([revived instanceof one, revived instanceof two]).toEqual([false, false]);
  });

  test('is an instance of a class that a function has defined again', () => {
    const define = () => {
      class Local extends Error {}
      return Local;
    };
    const process = newProcess();
    const [first, second] = [define(), define()];
    const stored = process.store(new first('m'));

    expect(stored.error).toBeInstanceOf(first);
    expect(stored.error).not.toBeInstanceOf(second);
    expect(process.read(stored)).toBeInstanceOf(second);
    expect(newProcess().read(stored)).toBeInstanceOf(second);
  });

  test('with a minified name is not mixed up with another class of that name in the next build', () => {
    const build = (text: string) => runInNewContext(`(${text})`, { Error }) as new (message: string) => Error;
    const [declined, missing] = [build('class e extends Error{a(){}}'), build('class e extends Error{b(){}}')];
    const stored = newProcess([declined]).store(new declined('m'));
    const unregistered = newProcess().store(new declined('m'));

    expect(newProcess([missing]).read(stored) instanceof missing).toBe(false);
    expect(newProcess([declined]).read(stored) instanceof declined).toBe(true);
    expect(newProcess().read(unregistered) instanceof missing).toBe(false);
    expect(newProcess().read(unregistered) instanceof build('class e extends Error{a(){}}')).toBe(true);
  });

  test('without a name is recognised by its text', () => {
    const stored = newProcess().store(new (class extends Error {})('m'));

    expect(stored.error).toBeInstanceOf(Error);
    expect(newProcess().read(stored).message).toBe('m');
  });

  test('does not become one that the application has frozen', () => {
    const revived = newProcess().read(newProcess().store(new CardDeclined(1, '1')));

    Object.freeze(revived);

    expect(revived instanceof CardDeclined).toBe(true);
  });

  test('is read back as one if its class was registered since', () => {
    const stored = newProcess().store(new CardDeclined(5, '1'));

    expect(newProcess([CardDeclined]).read(stored).constructor).toBe(CardDeclined);
    expect(newProcess([{ 'my.CardDeclined': CardDeclined }]).read(stored).constructor).toBe(CardDeclined);
  });

  test.each<[string, ErrorClasses, ErrorClasses]>([
    ['was registered since', [], [PaymentError]],
    ['is no longer registered', [PaymentError], []],
    ['has another name since', [PaymentError], [{ 'my.PaymentError': PaymentError }]],
  ])('is recognised if a class that it extends %s', (_, before, after) => {
    const stored = newProcess(before).store(new CardDeclined(5, '1'));

    const revived = newProcess(after).read(stored);

    expect(revived instanceof PaymentError).toBe(true);
    expect(revived instanceof CardDeclined).toBe(true);
  });

  test('is told of once, with the line to add', () => {
    const { store, warnings } = newProcess([PaymentError], { warnsOfErrors: true });

    for (const error of [new CardDeclined(1, '1'), new CardDeclined(2, '2'), new PaymentError(), new TypeError()])
      store(error);
    store(new (class e extends Error {})());

    expect(warnings).toEqual([
      'A workflow got an error of class CardDeclined, which is not registered. After a restart, `instanceof` recognises ' +
        'such an error if the code of the class is still the same, and it has no methods until then. ' +
        'Add: DBOS.registerErrors(CardDeclined)',
      expect.stringContaining("Add: DBOS.registerErrors({ 'a lasting name': e })"),
    ]);
  });
});

describe('an error of a class that every process has', () => {
  test.each<[string, () => Error]>([
    ['Error', () => new Error('m')],
    ['TypeError', () => new TypeError('m')],
    ['RangeError', () => new RangeError('m')],
    ['AggregateError', () => new AggregateError([new TypeError('x')], 'm')],
    ['a named Error', () => Object.assign(new Error('m'), { name: 'TypeError' })],
    ['a DOMException', () => new DOMException('m', 'AbortError')],
    ['DBOSWorkflowCancelledError', () => new DBOSWorkflowCancelledError('w')],
    ['DBOSMaxStepRetriesError', () => new DBOSMaxStepRetriesError('s', 1, [new CardDeclined(1, '1')])],
    ['PortableWorkflowError', () => new PortableWorkflowError('m', 'Odd', 7, { a: 1 })],
    ['a class derived from ours', () => new (class Mine extends DBOSWorkflowCancelledError {})('w')],
  ])('keeps it: %s', (_, make) => {
    const thrown = make();

    const stored = newProcess().store(thrown);
    const revived = newProcess().read(stored);

    for (const copy of [stored.error as Error, revived]) {
      const standard = (error: Error) =>
        error.constructor.name === 'Mine' ? DBOSWorkflowCancelledError : error.constructor;
      expect(copy).toBeInstanceOf(standard(thrown));
      expect(copy.name).toBe(thrown.name);
      expect(copy.message).toBe(thrown.message);
      expect((copy as { code?: unknown }).code).toBe((thrown as { code?: unknown }).code);
    }
  });

  test('has the same text as in DBOS', () => {
    const { text } = newProcess().store(Object.assign(new TypeError('bad'), { code: 'E', stack: 's' }));

    expect(text).toBe(
      '{"json":{"name":"TypeError","message":"bad","stack":"s","code":"E"},"__dbos_serializer":"superjson"}',
    );
  });

  test('has that of this realm if it comes from another', () => {
    const foreign: unknown = runInNewContext(`new RangeError('foreign')`);

    expect(newProcess().store(foreign).error).toBeInstanceOf(RangeError);
  });
});

describe('what an error holds', () => {
  test('is read back with it, classes and all', () => {
    const cause = new CardDeclined(7, '7');
    const thrown = Object.assign(new AggregateError([cause, new TypeError('t')], 'all', { cause }), { first: cause });

    const revived = newProcess([CardDeclined]).read<typeof thrown>(newProcess([CardDeclined]).store(thrown));

    expect(revived.cause).toBeInstanceOf(CardDeclined);
    expect(revived.errors[0]).toBeInstanceOf(CardDeclined);
    expect(revived.errors[1]).toBeInstanceOf(TypeError);
    expect(revived.first.digits).toBe('7');
  });

  test('is not shown if it was not: fields that are not enumerable', () => {
    const thrown = Object.defineProperty(new Error('m'), 'secret', { value: 5 });

    const { error } = newProcess().store(thrown);

    expect((error as { secret?: unknown }).secret).toBe(5);
    expect(Object.keys(error as object)).toEqual([]);
  });

  test('is kept as far as it can be stored', () => {
    const socket: Record<string, unknown> = { open: true };
    class Socket {
      readonly self = this;
    }
    const thrown = Object.assign(new Error('Request failed with status code 404'), {
      response: { status: 404, data: { at: new Date(5) }, request: new Socket(), list: [1, new Socket()], retry() {} },
      request: new Socket(),
      config: { url: '/x', agent: new Socket(), socket },
    });

    const { error } = newProcess().store(thrown);

    expect(error).toEqual(
      Object.assign(new Error('Request failed with status code 404'), {
        response: { status: 404, data: { at: new Date(5) }, list: [1, null] },
        config: { url: '/x', socket: { open: true } },
      }),
    );
  });

  test('is what a constant of its class says, as of an HTTP client', () => {
    class ClientError extends Error {
      declare isClientError: boolean;
    }
    Object.defineProperty(ClientError.prototype, 'isClientError', { value: true });

    const revived = newProcess().read<ClientError>(newProcess().store(new ClientError('m')));

    expect(revived.isClientError).toBe(true);
  });

  test('does not hinder it if its getters fail', () => {
    class Odd extends Error {
      get broken(): string {
        throw new Error('no');
      }

      override get name(): string {
        return this.#name;
      }

      readonly #name = 'Odd';
    }

    const process = newProcess([Odd]);
    const stored = process.store(new Odd('m'));

    for (const copy of [stored.error, process.read(stored)]) expect(copy).toMatchObject({ name: 'Odd', message: 'm' });
  });
});

test('a reader that knows only superjson finds all fields where they have always been', () => {
  const thrown = Object.assign(new CardDeclined(5, '47'), { code: 'E', at: new Date(5), cause: new TypeError('t') });

  const { text } = newProcess().store(thrown);

  const described = new SuperJSON().deserialize(JSON.parse(text) as SuperJSONResult);
  expect(described).toMatchObject({
    name: 'Error',
    message: 'declined: 5',
    stack: thrown.stack,
    amount: 5,
    code: 'E',
    at: new Date(5),
    cause: { name: 'TypeError', message: 't', stack: thrown.cause.stack },
  });
  const [more, ...others] = Object.keys(described as object).filter((key) => key.startsWith('__'));
  expect([more, others]).toEqual(['__everstep', []]);
});

test('an error that is stored again stays what it is', () => {
  const [first, second, third] = [newProcess(), newProcess(), newProcess()];
  const once = first.store(new CardDeclined(5, '47'));

  const twice = second.store(second.read(once));
  const revived = third.read<CardDeclined>(twice);

  expect(JSON.parse(twice.text)).toMatchObject({ json: { message: 'declined: 5', amount: 5 } });
  expect(revived instanceof CardDeclined).toBe(true);
  expect(revived.digits).toBe('47');
});

describe('an error that a recipe claims', () => {
  const recipe = {
    name: 'CardDeclined',
    isApplicable: (value: unknown): value is CardDeclined => value instanceof CardDeclined,
    serialize: ({ amount, digits }: CardDeclined) => ({ amount, digits }),
    deserialize: ({ amount, digits }: { amount: number; digits: string }) => new CardDeclined(amount, digits),
  };

  test('is made by it', () => {
    const [first, second] = [newProcess(), newProcess()];
    for (const { codec } of [first, second]) codec.registerRecipe(recipe);
    const thrown = new CardDeclined(5, '47');

    const stored = first.store(new Error('outer', { cause: thrown }));
    const revived = second.read<Error & { cause: CardDeclined }>(stored);

    expect(revived.cause.constructor).toBe(CardDeclined);
    expect(revived.cause.digits).toBe('47');
    expect(revived.cause.stack).toBe(thrown.stack);
    expect(first.warnings).toEqual([]);
  });

  test('is read without it, and stored if it fails', () => {
    const process = newProcess();
    process.codec.registerRecipe({
      ...recipe,
      serialize(): never {
        throw new Error('no');
      },
    });

    expect(process.store(new CardDeclined(5, '47')).error).toMatchObject({ amount: 5, digits: '47' });
    const claimed = newProcess();
    claimed.codec.registerRecipe(recipe);
    expect(newProcess().read(claimed.store(new CardDeclined(6, '48')))).toMatchObject({ amount: 6, digits: '48' });
  });
});

test.each(['nonsense', '{"names":[]}', '{"names":[1],"seen":{},"hidden":7,"inherited":[],"claimed":[]}', 'null'])(
  'what stands in the place of the class is ignored if it is %s',
  (more) => {
    const value = more === 'nonsense' ? '"nonsense"' : more;
    const text = `{"json":{"name":"E","message":"m","stack":"s","__everstep":${value}},"__dbos_serializer":"superjson"}`;

    expect(newProcess().read({ text, serialization: 'js_superjson' })).toMatchObject({ name: 'E', message: 'm' });
  },
);
