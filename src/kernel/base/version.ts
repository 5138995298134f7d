// The version of the library. A test compares it with package.json.

export const LIBRARY_VERSION = '0.1.0';
