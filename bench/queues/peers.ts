// Libraries of bench/node_modules. The compiler cannot look for them there, so each adapter says what it uses.
import { pathToFileURL } from 'node:url';

/** Files to import, by the name of the module; given by the parent. */
const paths = JSON.parse(process.argv[4] ?? '{}') as Record<string, string>;

export async function importPeer<Module>(name: string): Promise<Module> {
  return (await import(pathToFileURL(paths[name] ?? '').href)) as Module;
}
