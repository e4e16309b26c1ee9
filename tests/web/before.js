// Emscripten 3.1.6 takes a node that has fetch() for a browser.
globalThis.fetch = undefined;
// Every browser has a global `crypto`; node has one from version 20 on, and Debian 12 has version 18.
if (!globalThis.crypto) globalThis.crypto = require('crypto').webcrypto;
