// Emscripten 3.1.6 takes a node that has fetch() for a browser.
globalThis.fetch = undefined;
