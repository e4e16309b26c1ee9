// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// The browser client of blindfuse: private look-ups. The server learns how many keys are asked for and when; not
// which, and not whether they are there.

/** Keys are strings (their UTF-8) or bytes; in an index database numbers 0, 1, 2, ... */
export type Key = string | Uint8Array | number | bigint;

export type Stage =
  | 'waiting-for-lock'
  | 'fetching-hints'
  | 'preparing-queries'
  | 'waiting-for-server'
  | 'waiting-for-answer'
  | 'checking-hints'
  | 'decoding-answers';

export interface Progress {
  stage: Stage;
  /** Bytes of hints, rows of the database, or keys; 0 while waiting. */
  done: number;
  total: number;
}

export interface ConnectOptions {
  /** Called about twenty times a second while the client works. */
  onProgress?: ((progress: Progress) => void) | null;
  /** Where the server asks for one. */
  apiKey?: string | null;
  /** A database in another mode, whose secrecy rests on something else, is refused. Default: null, either. */
  mode?: 'hint' | 'packed' | null;
  /** The public key that signs the database, 64 hex digits. A database that is not signed with it, or is older than one
   * seen before, is refused with a SignatureError. It takes a browser with Ed25519 in crypto.subtle, and a page that came
   * by https. No key protects against the site that the page itself came from. Default: null, any: the first one seen is
   * remembered, and signerWarning says when it changes. */
  serverKey?: string | null;
  /** With a key, a database that is older than one seen before is taken. Default: false. */
  allowRollback?: boolean;
  /** Whether hints are kept for the next visit, in IndexedDB. Default: 'persistent', as far as the browser allows. */
  storage?: 'persistent' | 'memory';
  /** Queries to make ahead, on all processors up to four (one, in the mode 'packed'), while the client is idle, once it
   * has been asked for a key. Default: 1. */
  prepareAhead?: number;
  /** The deadline of a method, and of connect(), in seconds, with all requests that it makes and repeats. It has a
   * second more for each 32,000 bytes that it moves, as the database announces them: hints, queries and responses. In
   * getMany and lookUpMany every 64 keys have a deadline, or every 4 requests where those are for several keys.
   * Default: 60; 1 to 86400. */
  timeoutSeconds?: number;
  /** A database whose hints take more is refused before anything is fetched. Default: 1 GiB. */
  hintBytesMax?: number;
  /** The same for one query, one response, or the table of shards and packs. Default: 256 MiB. */
  transferBytesMax?: number;
  /** Stops connect() alone; every method takes one of its own. */
  signal?: AbortSignal | null;
}

/** A signal stops the worker, and with it everything that the client was asked: the rest fails, too, with a
 * CancelledError. The client can be used again, but a download that was going on begins again; one that broke by itself
 * goes on where it was. */
export interface CallOptions {
  signal?: AbortSignal;
}

/** What the server offers, as of the last time that it was asked. */
export interface DatabaseInfo {
  readonly epoch: string;
  readonly kind: 'keyword' | 'index';
  readonly keyCount: number;
  readonly rowCount: number;
  readonly shardCount: number;
  /** Where one query asks for several keys: n keys take n / keysPerRequest requests, rounded up, of one query each.
   * Otherwise 1. */
  readonly keysPerRequest: number;
  /** A query has rowCount words for each. */
  readonly bucketCount: number;
  readonly recordBytes: number;
  readonly valueBytesMax: number;
  readonly queryBytes: number;
  readonly responseBytes: number;
  /** Hints of all shards, or masks: what a first visit downloads. */
  readonly hintBytes: number;
  /** What the server multiplies a query with. */
  readonly databaseBytes: number;
  readonly parameterSet: string;
  /** 'packed': there are masks instead of hints, which are smaller, and queries carry a packing key. */
  readonly mode: 'hint' | 'packed';
}

/** The signer of the database. */
export interface Signer {
  /** The public key, 64 hex digits. */
  readonly key: string;
  /** The manifest's number: a larger one is newer. */
  readonly sequence: number;
  /** When it was signed. */
  readonly time: Date;
  /** The signature is right; false where the browser cannot check it. */
  readonly isChecked: boolean;
}

export interface SyncResult {
  epoch: string;
  shardCount: number;
  /** Hints of shards, or masks of packs. */
  partCount: number;
  /** Of those parts. */
  shardsFetched: number;
  bytesFetched: number;
  hintBytes: number;
  seconds: number;
}

/** One look-up, and what it took. */
export interface Answer {
  /** null: the key is not there, or was not asked for. */
  value: Uint8Array | null;
  /** False: other keys of the call took its places in requests for several keys. Ask for it again. */
  asked: boolean;
  /** Its share, rounded up, where one query asks for several keys. */
  queryBytes: number;
  responseBytes: number;
  prepareSeconds: number;
  serverSeconds: number;
  decodeSeconds: number;
  totalSeconds: number;
  /** With `inspect`: the very bytes sent and received. */
  query?: Uint8Array;
  response?: Uint8Array;
}

export interface Client {
  readonly url: string;
  readonly info: DatabaseInfo;
  /** As of the last manifest that was fetched; null: it is not signed. */
  readonly signer: Signer | null;
  /** Without a serverKey: that the signer changed, or that the database was rolled back. */
  readonly signerWarning: string | null;
  /** Whether hints are kept for the next visit, and why not. */
  readonly storage: 'persistent' | 'memory';
  readonly storageReason: string | null;
  /** Queries that are ready to be sent. */
  readonly preparedCount: number;

  /** Fetches what has changed of the hints, which otherwise the first look-up does; with `verify`, checks those that
   * are here first. */
  sync(options?: CallOptions & {verify?: boolean}): Promise<SyncResult>;
  /** null: the key is not there. */
  get(key: Key, options?: CallOptions): Promise<Uint8Array | null>;
  /** The value as UTF-8 text. */
  getText(key: Key, options?: CallOptions): Promise<string | null>;
  /** Several keys, in their order and of one version of the database: one pass to prepare the queries of every 64, and
   * up to sixteen in a request. Where requests are for several keys, every 4 requests are prepared together; a key may
   * find no place in them, which is a NotAskedError. All requests are sent before an answer is decoded. Lists whose
   * answers take more than about 256 MiB of memory are looked up in several such pieces. */
  getMany(keys: Iterable<Key>, options?: CallOptions): Promise<(Uint8Array | null)[]>;
  lookUp(key: Key, options?: CallOptions & {inspect?: boolean}): Promise<Answer>;
  /** getMany, with what each look-up took, and whether it was asked for. */
  lookUpMany(keys: Iterable<Key>, options?: CallOptions): Promise<Answer[]>;
  /** Makes this many more queries ahead, in one pass; up to 1000 can be ready. Memory: 4 bytes a row of each bucket
   * for each, and 24 KiB more in the mode 'packed', where with two levels it is up to 48 KiB and 4 bytes a group. */
  prepare(count: number, options?: CallOptions): Promise<void>;
  /** Ends the worker; what it was asked fails with a CancelledError. */
  close(): void;
}

/** Asks the server what it offers. `url` may be relative to the page. Keys of a wrong type are a TypeError;
 * everything else that goes wrong is a BlindfuseError. */
export function connect(url: string, options?: ConnectOptions): Promise<Client>;

export type ErrorCode =
  | 'input'
  | 'connection'
  | 'protocol'
  | 'signature'
  | 'server'
  | 'busy'
  | 'epoch-gone'
  | 'cancelled'
  | 'cache'
  | 'resource'
  | 'not-asked';

/** The message is one line that names the cure. */
export class BlindfuseError extends Error {
  readonly code: ErrorCode;
  /** Of the server's answer, when it refused. */
  readonly status?: number;
  readonly retryAfterS?: number;
  /** The site was updated since the page was loaded, and only loading it again helps. */
  readonly isOutdated?: boolean;
}
/** A URL, an option, or a key is not what it should be; or a database needs more than the limits allow. */
export class InputError extends BlindfuseError {}
/** No server answered, the connection broke, the call took too long, or the client's own files do not load. */
export class ConnectionError extends BlindfuseError {}
/** The answer did not come from a blindfuse server, or from a newer one, or from one that breaks the protocol. */
export class ProtocolError extends BlindfuseError {}
/** The database is not signed as it has to be, or is older than one seen before. Nothing of it was used. */
export class SignatureError extends ProtocolError {}
/** The server answered with an error: codes 'server', 'busy' and 'epoch-gone'. */
export class ServerError extends BlindfuseError {}
/** A signal or close() ended it. */
export class CancelledError extends BlindfuseError {}
/** Hints that were kept are damaged: sync({verify: true}) fetches them again. */
export class CacheError extends BlindfuseError {}
/** Each request is for several keys, and some of the call's keys found no place in the requests, whose number does not
 * depend on keys. lookUpMany() says which keys were not asked for. Ask for them with the keys of your next call, or alone
 * if the server may see one more request. The same list would leave them out again. */
export class NotAskedError extends BlindfuseError {}
/** The browser failed: memory, or a worker that does not start. */
export class ResourceError extends BlindfuseError {}
