// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// The errors that a page sees. `code` says which kind it is; the message is one line that names the cure.

export class BlindfuseError extends Error {
  constructor(code, message, details = {}) {
    super(message);
    this.name = new.target.name;
    this.code = code;
    if (details.status !== undefined) this.status = details.status;
    if (details.isOutdated) this.isOutdated = true;
    if (details.retryAfterS !== undefined) this.retryAfterS = details.retryAfterS;
  }
}

// A URL, an option, or a key is not what it should be.
export class InputError extends BlindfuseError {}
// There was no answer from a server, the connection broke, the call took too long, or the client's own files do not
// load.
export class ConnectionError extends BlindfuseError {}
// The answer did not come from a blindfuse server, or from a newer one, or from one that breaks the protocol.
export class ProtocolError extends BlindfuseError {}
// The database is not signed as it has to be, or is older than one seen before. Nothing of it was used.
export class SignatureError extends ProtocolError {}
// The server answered with an error; `status` is its own. Also busy and epoch-gone.
export class ServerError extends BlindfuseError {}
// A signal, or close(), ended the call.
export class CancelledError extends BlindfuseError {}
// The cached hints are damaged.
export class CacheError extends BlindfuseError {}
// The browser failed: memory, a worker that does not start.
export class ResourceError extends BlindfuseError {}

// Each request is for several keys, and some of the call's keys found no place in the requests, whose number does not
// depend on keys. lookUpMany() says which.
export class NotAskedError extends BlindfuseError {}

const classes = {
  input: InputError,
  connection: ConnectionError,
  protocol: ProtocolError,
  signature: SignatureError,
  server: ServerError,
  busy: ServerError,
  'epoch-gone': ServerError,
  cancelled: CancelledError,
  cache: CacheError,
  'not-asked': NotAskedError,
};

// Makes an error from {code, message, status?, retryAfterS?}, which is what crosses from the worker.
export function errorOf(report) {
  return new (classes[report.code] ?? ResourceError)(report.code, report.message, report);
}
