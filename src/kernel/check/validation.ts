// The one kit that checks what comes from outside: arguments, options, settings, HTTP requests, command lines.
// Make a check once at module level, then read with it:
//
//   const OPTIONS = record({ limit: optional(integer({ min: 1 })), status: oneOrMany(oneOf(STATUSES)) });
//   const { limit = 10, status } = OPTIONS.read(options, 'options');
//
//   options.limit must be an integer of at least 1, but is 0.
//   options has an unknown field "limt". Did you mean "limit"?
export * from './check.js';
export * from './containers.js';
export * from './duration.js';
export * from './json.js';
export { nearest } from './nearest.js';
export { shown } from './shown.js';
export * from './values.js';
