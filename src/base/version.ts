// The version of the library. A test holds it to package.json.

export const LIBRARY_VERSION = '0.1.0';
