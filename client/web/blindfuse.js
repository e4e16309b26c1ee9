// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// The browser client: private look-ups in a database that a blindfuse server offers.
//
//   import {connect} from './blindfuse.js';
//   const words = await connect('https://example.org', {onProgress: console.log});
//   const definition = await words.getText('serendipity');
//
// The C++ client library does the work, as WebAssembly in a worker; this file passes messages. The functions are
// described in blindfuse.d.ts. A page needs, in addition to its own origin's scripts and workers, 'wasm-unsafe-eval' in its
// content security policy, if it has one.

import {buildId} from './build_id.js';
import {InputError, CancelledError, ConnectionError, NotAskedError, ResourceError, ProtocolError, errorOf}
  from './errors.js';

export * from './errors.js';

const MiB = 2 ** 20;
const defaults = {
  onProgress: null,
  apiKey: null,
  mode: null,
  serverKey: null,
  allowRollback: false,
  storage: 'persistent',
  prepareAhead: 1,
  timeoutSeconds: 60,
  hintBytesMax: 1024 * MiB,
  transferBytesMax: 256 * MiB,
  signal: null,
};

// The bounds of the options' numbers. Hints lie in the browser's memory, outside of the module's; the module's own ends
// at 2 GiB, and has to have room for one shard's hint, and for queries and responses, several times over.
const bounds = {prepareAhead: 1000, timeoutSeconds: 86_400, hintBytesMax: 3 * 1024 * MiB, transferBytesMax: 512 * MiB};
const least = {timeoutSeconds: 1};

function checkedOptions(given) {
  for (const name of Object.keys(given)) {
    if (!(name in defaults)) {
      throw new InputError('input', `connect has no option ${name}; it has ${Object.keys(defaults).join(', ')}`);
    }
  }
  const options = {...defaults};
  for (const [name, value] of Object.entries(given)) if (value !== undefined) options[name] = value;
  const wrong = (name, right) => {
    throw new InputError('input', `connect's ${name} must be ${right}`);
  };
  if (options.onProgress !== null && typeof options.onProgress !== 'function') wrong('onProgress', 'a function');
  // A text that a program left empty by mistake must not switch a check off.
  const isRight = (name, pattern) => {
    const value = options[name];
    return value === null || (typeof value === 'string' && pattern.test(value));
  };
  if (!isRight('apiKey', /^[A-Za-z0-9._~+/=-]+$/)) {
    wrong('apiKey', 'the key that the server\'s operator gave out: letters, digits and -._~+/=');
  }
  if (!isRight('mode', /^(hint|packed)$/)) wrong('mode', "'hint' or 'packed'");
  if (!isRight('serverKey', /^[0-9a-f]{64}$/)) {
    wrong('serverKey', 'the public key of the database: 64 digits 0-9 and a-f');
  }
  if (typeof options.allowRollback !== 'boolean') wrong('allowRollback', 'true or false');
  if (options.storage !== 'persistent' && options.storage !== 'memory') wrong('storage', "'persistent' or 'memory'");
  for (const [name, max] of Object.entries(bounds)) {
    const min = least[name] ?? 0;
    if (!Number.isInteger(options[name]) || options[name] < min || options[name] > max) {
      wrong(name, `a whole number from ${min} to ${max}`);
    }
  }
  return options;
}

// The address of the server, whole: a page may give one relative to its own.
function resolvedUrl(text) {
  let url;
  try {
    url = new URL(text, globalThis.document?.baseURI);
  } catch {
    url = null;
  }
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.search || url.hash || url.username) {
    throw new InputError('input', `'${text}' is not the URL of a server; write it like https://example.org/words`);
  }
  return url.href.replace(/\/+$/, '');
}

function bytesOfKey(key, kind) {
  if (typeof key === 'number' || typeof key === 'bigint') {
    if (kind !== 'index') throw new TypeError('this database is asked by key, a string or a Uint8Array, not by number');
    if (key < 0 || (typeof key === 'number' && !Number.isSafeInteger(key))) {
      throw new TypeError('the number of an entry is 0, 1, 2, ...; a bigint above 2^53');
    }
    return new TextEncoder().encode(String(key));
  }
  if (typeof key === 'string') {
    if (/\p{Surrogate}/u.test(key)) throw new TypeError('a key has half of a surrogate pair, which is not text');
    return new TextEncoder().encode(key);
  }
  if (key instanceof Uint8Array && kind !== 'index') return key.slice();
  throw new TypeError(kind === 'index' ? 'a key of this database is a number or a bigint'
    : 'a key is a string or a Uint8Array');
}

function several(keys, what) {
  if (typeof keys === 'string' || typeof keys?.[Symbol.iterator] !== 'function' || keys instanceof Uint8Array) {
    throw new TypeError(`${what} takes an array of keys`);
  }
  return [...keys];
}

function valuesOf({values, costs}) {
  const count = costs.filter(({asked}) => !asked).length;
  if (count === 0) return values;
  throw new NotAskedError('not-asked', `${count} of ${costs.length} keys ${count === 1 ? 'was' : 'were'} not asked for,`
    + ' as others took the places in the requests: ask for them with the keys of your next call; lookUpMany() says which they are');
}

// A worker, and the calls that wait for its replies.
class Connection {
  constructor(hear) {
    this.pending = new Map();
    this.lastId = 0;
    this.hear = hear;
    this.failure = null;
    this.hasStarted = false;
    const url = new URL('./worker.js', import.meta.url);
    try {
      this.worker = new Worker(url, {type: 'module', name: 'blindfuse'});
    } catch (error) {
      throw new ResourceError('resource', `the browser starts no worker from ${url} (${error.message}): serve the client`
        + ' from the page\'s own origin, and let its content security policy have worker-src \'self\'');
    }
    this.worker.onmessage = ({data}) => this.receive(data);
    this.worker.onerror = (event) => {
      event.preventDefault?.();
      this.end(this.hasStarted
        ? new ResourceError('resource', `the client's worker failed (${event.message}); try again, or reload the page`)
        : new ConnectionError('connection', `${url}, or what it imports, does not load`
          + ` (${event.message || 'no reason given'}): check that this device is online, that all of the client's files`
          + ' are served, and that the page\'s content security policy has worker-src \'self\''));
    };
    this.worker.onmessageerror = () => this.end(new ResourceError('resource',
      'the client\'s worker sent what cannot be read; reload the page'));
  }

  receive({id, reply, error, build, ...news}) {
    this.hasStarted = true;
    if (news.started && build !== buildId) {
      this.end(new ConnectionError('connection', 'the site was updated since this page was loaded; reload the page',
        {isOutdated: true}));
      return;
    }
    const asked = this.pending.get(id);
    this.pending.delete(id);
    this.hear(reply ?? error ?? news);
    if (error) {
      const thrown = errorOf(error);
      asked?.reject(thrown);
      if (error.isFatal) this.end(thrown);
    } else {
      asked?.resolve(reply);
    }
  }

  request(message) {
    if (this.failure) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      this.pending.set(id, {resolve, reject});
      this.worker.postMessage({...message, id});
    });
  }

  // Ends it for good: all calls that wait, and all later ones, fail with `error`. Prepared queries are lost.
  end(error) {
    if (this.failure) return;
    this.failure = error;
    this.worker.terminate();
    this.hear({prepared: 0});
    for (const {reject} of this.pending.values()) reject(error);
    this.pending.clear();
  }
}

class Client {
  #url;
  #options;
  #connection = null;
  #connected = null; // settles when #connection can be asked
  #isClosed = false;
  #info = null;
  #signer = null;
  #kind = null; // of the first database there was
  #preparedCount = 0;
  #storage = {kind: 'memory', reason: null};

  constructor(url, options) {
    this.#url = url;
    this.#options = options;
  }

  get url() {
    return this.#url;
  }
  get info() {
    return this.#info;
  }
  get signer() {
    if (!this.#signer?.key) return null;
    const {key, sequence, time, isChecked} = this.#signer;
    return {key, sequence, time: new Date(time * 1000), isChecked};
  }
  get signerWarning() {
    return this.#signer?.warning || null;
  }
  get storage() {
    return this.#storage.kind;
  }
  get storageReason() {
    return this.#storage.reason;
  }
  get preparedCount() {
    return this.#preparedCount;
  }

  async sync({verify = false, signal} = {}) {
    const reply = await this.#ask({op: 'sync', verify: Boolean(verify)}, signal);
    const {epoch, shardCount, partCount, shardsFetched, bytesFetched, hintBytes, seconds} = reply;
    return {epoch, shardCount, partCount, shardsFetched, bytesFetched, hintBytes, seconds};
  }

  async get(key, {signal} = {}) {
    return valuesOf(await this.#lookUp([key], false, signal))[0];
  }

  async getText(key, {signal} = {}) {
    const value = await this.get(key, {signal});
    if (value === null) return null;
    try {
      return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(value);
    } catch {
      throw new InputError('input', 'the value of this key is not UTF-8; use get(), which gives its bytes');
    }
  }

  async getMany(keys, {signal} = {}) {
    const all = several(keys, 'getMany');
    return all.length === 0 ? [] : valuesOf(await this.#lookUp(all, false, signal));
  }

  async lookUp(key, {inspect = false, signal} = {}) {
    const {values, costs, query, response} = await this.#lookUp([key], Boolean(inspect), signal);
    return {value: values[0], ...costs[0], ...(inspect ? {query, response} : {})};
  }

  async lookUpMany(keys, {signal} = {}) {
    const all = several(keys, 'lookUpMany');
    if (all.length === 0) return [];
    const {values, costs} = await this.#lookUp(all, false, signal);
    return values.map((value, i) => ({value, ...costs[i]}));
  }

  async prepare(count, {signal} = {}) {
    if (!Number.isInteger(count) || count < 0 || count > bounds.prepareAhead) {
      throw new TypeError(`prepare takes how many, a whole number from 0 to ${bounds.prepareAhead}`);
    }
    await this.#ask({op: 'prepare', count}, signal);
  }

  close() {
    this.#isClosed = true;
    this.#end(new CancelledError('cancelled', 'the client was closed; connect again'));
  }

  // This is connect()'s own part.
  async start(signal) {
    await this.#ask(null, signal);
    return this;
  }

  async #lookUp(keys, inspect, signal) {
    const bytes = keys.map((key) => bytesOfKey(key, this.#kind));
    return this.#ask({op: 'lookUp', keys: bytes, inspect}, signal);
  }

  // Asks the worker, a new one where there is none; null only connects.
  async #ask(message, signal) {
    if (this.#isClosed) throw new CancelledError('cancelled', 'the client was closed; connect again');
    if (signal && signal.aborted) throw new CancelledError('cancelled', 'cancelled by its signal');
    // The worker does not listen while it works, so a stop ends the worker, and all other calls with it.
    const stop = () => this.#end(new CancelledError('cancelled',
      'cancelled by a signal, and with it everything that this client was asked; ask again'));
    signal?.addEventListener('abort', stop, {once: true});
    try {
      if (!this.#connection || this.#connection.failure) this.#connect();
      const connection = this.#connection;
      await this.#connected;
      this.#checkKind();
      return message ? await connection.request(message) : undefined;
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  // A worker's own client does the same, but another worker begins again. A key of one kind may not be one of the
  // other: whether a query follows would tell the server.
  #checkKind() {
    if (this.#info.kind === this.#kind) return;
    throw new ProtocolError('protocol', `the server at ${this.#url} had a database of the kind ${this.#kind} and now has`
      + ` one of the kind ${this.#info.kind}: when that is meant to be, connect again, or reload the page`);
  }

  #connect() {
    const {onProgress, signal, ...options} = this.#options;
    const connection = new Connection((news) => this.#hear(news));
    this.#connection = connection;
    this.#connected = connection.request({op: 'connect', url: this.#url, ...options});
    // The next call tries again.
    this.#connected.catch((error) => connection.end(error));
  }

  #hear({info, signer, prepared, storage, progress}) {
    if (signer) this.#signer = signer;
    if (info) {
      this.#info = Object.freeze(info);
      this.#kind ??= info.kind;
    }
    if (prepared !== undefined) this.#preparedCount = prepared;
    if (storage) this.#storage = storage;
    if (progress) this.#options.onProgress?.(progress);
  }

  #end(error) {
    this.#connection?.end(error);
    this.#connection = null;
  }
}

export async function connect(url, options = {}) {
  if (typeof WebAssembly === 'undefined') {
    throw new ResourceError('resource', 'this browser has no WebAssembly, or it is switched off; use a newer one');
  }
  if (typeof Worker === 'undefined') {
    throw new ResourceError('resource', 'this client runs in browsers alone: there are no web workers here');
  }
  const checked = checkedOptions(options);
  return new Client(resolvedUrl(url), checked).start(checked.signal);
}
