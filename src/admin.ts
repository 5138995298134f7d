// `everstep/admin`: the HTTP interface, for mounting into your own server.
export { type Admin, type AdminOptions, createAdmin } from './faces/http/admin.js';
export type { AdminSource } from './faces/http/source.js';
export type { AdminOutbox } from './plugins/outbox/outbox-view.http.js';
