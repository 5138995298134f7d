// `everstep/admin`: the HTTP interface, to be mounted into a server of your own.
export { type Admin, type AdminOptions, createAdmin } from './admin/admin.js';
export type { AdminSource } from './admin/source.js';
