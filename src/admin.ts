// `everstep/admin`: the HTTP interface, for mounting into your own server.
export { type Admin, type AdminOptions, createAdmin } from './admin/admin.js';
export type { AdminSource } from './admin/source.js';
export type { AdminOutbox } from './admin/views/outbox-view.js';
