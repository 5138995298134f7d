// The key under which `DBOS` and `DBOSClient` offer what other modules of the package need and users should not see.

/** In the global registry: a plugin may come with a copy of the package of its own. */
export const internals: unique symbol = Symbol.for('everstep.internals');
