// exchange.js with a stand-in for the browser's XMLHttpRequest: node exchange_test.mjs
import assert from 'node:assert';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';

// The module has no package that would say that it is one.
const source = readFileSync(new URL('../../client/web/exchange.js', import.meta.url), 'utf8');
const {exchange} = await import('data:text/javascript,' + encodeURIComponent(source));

globalThis.self = {navigator: {onLine: true}};

// Every request ends as `answer` does; gives the last one.
function browser(answer) {
  const seen = {headers: {}};
  globalThis.XMLHttpRequest = class {
    open(method, url, isAsync) {
      Object.assign(seen, {method, url, isAsync});
    }
    setRequestHeader(name, value) {
      seen.headers[name] = value;
    }
    getResponseHeader(name) {
      return this.head[name] ?? null;
    }
    send(body) {
      Object.assign(seen, {body, timeout: this.timeout});
      Object.assign(this, answer());
    }
  };
  return seen;
}

test('a request has the time that the call has left', () => {
  const seen = browser(() => ({status: 200, head: {}, response: new ArrayBuffer(3)}));
  const reply = exchange({method: 'GET', url: 'http://test/x', range: '', apiKey: '', body: null, timeoutMs: 1234});
  assert.equal(seen.timeout, 1234);
  assert.equal(seen.isAsync, false);
  assert.equal(reply.status, 200);
  assert.equal(reply.body.length, 3);
});

test('what took too long is told from what broke', () => {
  for (const name of ['TimeoutError', 'NetworkError']) {
    browser(() => {
      throw new DOMException('it did not end well', name);
    });
    const reply = exchange({method: 'GET', url: 'http://test/x', range: '', apiKey: '', body: null, timeoutMs: 1});
    assert.deepEqual(reply, {status: 0, error: name});
  }
});

test('an answer without a body has its status', () => {
  browser(() => ({status: 204, head: {}, response: null}));
  const reply = exchange({method: 'GET', url: 'http://test/x', range: '', apiKey: '', body: null, timeoutMs: 1});
  assert.equal(reply.status, 204);
  assert.equal(reply.body.length, 0);
});

test("a request that is to be fresh has a condition, so that the browser's cache does not answer it", () => {
  for (const isFresh of [false, true]) {
    const seen = browser(() => ({status: 200, head: {}, response: new ArrayBuffer(0)}));
    exchange({method: 'GET', url: 'http://test/x', range: '', apiKey: '', body: null, timeoutMs: 1, isFresh});
    assert.equal('If-None-Match' in seen.headers, isFresh);
  }
});
