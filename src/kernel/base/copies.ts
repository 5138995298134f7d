// One process may load the package several times: as an ES module and as CommonJS, in several bundles, or as a plugin's own
// copy. Each copy has classes of its own, and objects of one are given to another. Here `instanceof` learns to recognise
// them. Call these functions in a static block of the class: bundlers omit statements outside of it.

type Class = { readonly prototype: object };

/** `name` is the only one of its kind in the package. Names of classes are not: minifiers change them. */
export function recognizeCopies(type: Class, name: string): void {
  const brand = addBrand(type, name);
  defineHasInstance(type, (asked, value) => asked === type && brand in value);
}

/** For the base of a family of classes. Each extends a class of its own that has a static `code`. */
export function recognizeCopiesByCode(base: Class & { readonly code: string }): void {
  const brand = addBrand(base, base.code);
  defineHasInstance(base, (asked, value) => {
    const code = codeOf(asked, base);
    return code !== undefined && brand in value && classesOf(value).some((type) => codeOf(type, base) === code);
  });
}

/** Recognises an instance, or one of a copy, without loading its class. */
export function isInstanceOf(value: object, name: string): boolean {
  return Symbol.for(`everstep.${name}`) in value;
}

/** Whether it is the prototype of the class, or of a copy of it. */
export function isPrototypeOf(prototype: object, name: string): boolean {
  return Object.hasOwn(prototype, Symbol.for(`everstep.${name}`));
}

function addBrand(type: Class, name: string): symbol {
  const brand = Symbol.for(`everstep.${name}`);
  Object.defineProperty(type.prototype, brand, { value: true });
  return brand;
}

/** Classes that are derived from it, also a user's own, inherit the method. */
function defineHasInstance(base: Class, isCopy: (asked: unknown, value: object) => boolean): void {
  const parent = Object.getPrototypeOf(base) as typeof Function.prototype;
  Object.defineProperty(base, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (typeof value !== 'object' || value === null) return false;
      return parent[Symbol.hasInstance].call(this, value) || isCopy(this, value);
    },
  });
}

/** Its own, or that of the class made for it. Not any other: a class that a user has derived has no copies. */
function codeOf(type: unknown, base: Class): string | undefined {
  const parent = Object.getPrototypeOf(type) as object;
  const holder = Object.hasOwn(type as object, 'code')
    ? type
    : parent !== base && Object.hasOwn(parent, 'code') && parent;
  return holder ? (holder as { code: string }).code : undefined;
}

function classesOf(value: object): unknown[] {
  const classes: unknown[] = [];
  for (let at = Object.getPrototypeOf(value) as object | null; at; at = Object.getPrototypeOf(at) as object | null) {
    classes.push(at.constructor);
  }
  return classes;
}
