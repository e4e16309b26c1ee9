// A stand-in for client/web/blindfuse.js that does as a test tells it in `window.fakeClient`: what a real server shows too
// rarely, too briefly or not on demand. It encrypts nothing.

const fake = {
  info: {}, storage: 'persistent', values: {}, wants: null, connect: [], sync: [], lookUp: [], fetchMs: 0, lookUpMs: 5,
  ...globalThis.fakeClient,
};

export class BlindfuseError extends Error {
  constructor({ code, message, status }) {
    super(message ?? code);
    this.code = code;
    if (status) this.status = status;
  }
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Fails as often as the test says. */
function failNext(errors) {
  const error = errors.shift();
  if (error) throw new BlindfuseError(error);
}

function noise(length) {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}

class FakeClient {
  info = {
    epoch: 'd73341c9c1737d855d3550b71add18a0ef7fb68d7f12de81cc0896404ac9a3be', kind: 'keyword', keyCount: 147_306,
    rowCount: 23_552, shardCount: 8, keysPerRequest: 1, bucketCount: 1, queryBytes: 73_600, responseBytes: 3_458, hintBytes: 7_550_144,
    parameterSet: 'lwe-1774', mode: 'hint', ...fake.info,
  };
  storage = fake.storage;
  storageReason = fake.storage === 'memory' ? 'it is a private window' : null;
  preparedCount = 0;
  signer = fake.signer ? { ...fake.signer, time: new Date(fake.signer.time) } : null;
  signerWarning = fake.signerWarning ?? null;
  #onProgress;

  constructor(onProgress) {
    this.#onProgress = onProgress;
  }

  async #steps(stage, total, ms) {
    for (let step = 0; step <= 20; ++step) {
      this.#onProgress({ stage, done: Math.round(total * step / 20), total });
      if (ms > 0) await pause(ms / 20);
      while (fake.hold === stage && step === 9) await pause(20);
    }
  }

  async sync() {
    failNext(fake.sync);
    await this.#steps('fetching-hints', this.info.hintBytes, fake.fetchMs);
  }

  async prepare() {
    await this.#steps('preparing-queries', this.info.rowCount, fake.fetchMs / 4);
    this.preparedCount = 1;
  }

  async lookUp(key) {
    if (fake.newEpoch) await this.#steps('fetching-hints', this.info.hintBytes, fake.fetchMs);
    Object.assign(this.info, fake.nextInfo);
    await pause(fake.lookUpMs);
    failNext(fake.lookUp);
    const value = fake.values[key];
    return {
      value: value === undefined ? null : typeof value === 'string' ? new TextEncoder().encode(value) : new Uint8Array(value),
      asked: true, queryBytes: this.info.queryBytes, responseBytes: this.info.responseBytes, prepareSeconds: 0.0412,
      serverSeconds: 0.0117, decodeSeconds: 0.0023, totalSeconds: 0.0144,
      query: noise(this.info.queryBytes), response: noise(this.info.responseBytes),
    };
  }

  close() {}
}

export async function connect(url, { onProgress, apiKey, serverKey }) {
  fake.connected = url;
  fake.serverKey = serverKey;
  failNext(fake.connect);
  if (fake.wants !== null && apiKey !== fake.wants) {
    throw new BlindfuseError({ code: 'server', status: 401, message: 'the server wants an API key' });
  }
  return new FakeClient(onProgress);
}
