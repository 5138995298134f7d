// Builds the dashboard into the package. Asset paths are relative, because the server decides where it is mounted.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

/** Prints how much JavaScript a browser loads. */
function reportSize(): Plugin {
  return {
    name: 'report-size',
    generateBundle(_, bundle) {
      const scripts = Object.values(bundle).filter((part) => part.type === 'chunk');
      const bytes = scripts.reduce((sum, { code }) => sum + gzipSync(code, { level: 9 }).byteLength, 0);
      console.log(`dashboard: ${(bytes / 1024).toFixed(1)} KB of JavaScript, gzipped`);
    },
  };
}

const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;

/** Adds the licences of the libraries that become part of the files. */
function addLicences(): Plugin {
  return {
    name: 'add-licences',
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((part) => (part.type === 'chunk' ? Object.keys(part.modules) : []));
      const folders = new Set(modules.flatMap((id) => PACKAGE.exec(id.replaceAll('\\', '/').replace(/^\0/, '')) ?? []));
      const texts = [...folders].sort().map((folder) => {
        const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
        const text = file === undefined ? 'See its package.json.' : readFileSync(join(folder, file), 'utf8').trim();
        return `${folder.replace(/^.*node_modules\//, '')}\n\n${text}\n`;
      });
      this.emitFile({ type: 'asset', fileName: 'LICENSES.txt', source: texts.join('\n----\n\n') });
    },
  };
}

// eslint-disable-next-line no-restricted-exports -- Vite reads its configuration from the default export.
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  esbuild: { jsx: 'automatic', legalComments: 'none' },
  plugins: [reportSize(), addLicences()],
  build: {
    outDir: '../dist/dashboard',
    emptyOutDir: true,
    target: 'es2022',
    // A strict content security policy allows no data: scripts, and inlined icons would not be cached.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      // Directives for servers of React mean nothing in a browser.
      onwarn: (warning, warn) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || warn(warning),
    },
  },
  logLevel: 'warn',
});
