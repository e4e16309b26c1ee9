// signatures.js with node's Web Cryptography, and a stand-in for the module: node --test signatures_test.mjs
import assert from 'node:assert';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {webcrypto} from 'node:crypto';

const read = (path) => readFileSync(new URL(path, import.meta.url), 'utf8');
const imported = "import {callCore} from './core_module.js';";
const source = read('../../client/web/signatures.js');
assert(source.includes(imported));
const {callWithSignatures, verdictOn} = await import('data:text/javascript,' + encodeURIComponent(
  source.replace(imported, 'const callCore = (...asked) => globalThis.callCore(...asked);')));
const vectors = JSON.parse(read('../vectors/signature.json'));
const bytesOf = (hex) => Uint8Array.from(Buffer.from(hex, 'hex'));

globalThis.self = {crypto: webcrypto};

const verdictOnCase = ({public_key: signer, message, signature}) => verdictOn({signer, signature}, bytesOf(message));

test('takes the signatures of RFC 8032', async () => {
  assert.equal(vectors.ed25519.length, 3);
  for (const vector of vectors.ed25519) assert.equal(await verdictOnCase(vector), 'right');
});

test('takes those of manifests', async () => {
  for (const {manifest, signed_text: text} of vectors.signed) {
    assert.equal(await verdictOn(manifest, new TextEncoder().encode(text)), 'right');
  }
});

test('refuses wrong ones', async () => {
  assert.equal(vectors.ed25519_wrong.length, 8);
  for (const vector of vectors.ed25519_wrong) assert.equal(await verdictOnCase(vector), 'wrong', vector.reason);
});

test('says when the browser cannot', async () => {
  const [vector] = vectors.ed25519;
  const unknown = () => Promise.reject(new DOMException('Unrecognized name.', 'NotSupportedError'));
  for (const crypto of [{}, {subtle: {importKey: unknown}}]) {
    globalThis.self = {crypto};
    assert.equal(await verdictOnCase(vector), 'unable');
  }
  globalThis.self = {crypto: webcrypto};
});

// A module that asks for the verdicts of these vectors, one after another, and then answers.
function coreThatAsks(asked) {
  const seen = [];
  globalThis.callCore = (core, request, keys) => {
    seen.push({request, keys});
    if (request.op === 'verdict') return {};
    const next = asked.shift();
    if (!next) return {answer: 42};
    return {unchecked: {signer: next.public_key, signature: next.signature}, bytes: bytesOf(next.message)};
  };
  return seen;
}

test('tells the module what the browser says, and asks again', async () => {
  const [right] = vectors.ed25519;
  const [wrong] = vectors.ed25519_wrong;
  const seen = coreThatAsks([right, wrong]);
  const keys = [new Uint8Array([1])];
  let refreshed = 0;
  const reply = await callWithSignatures({}, {op: 'beginLookUp'}, keys, async () => {
    refreshed += 1;
    assert.notEqual(seen.at(-1).request.op, 'verdict'); // before the module hears of it
  });
  assert.deepEqual(reply, {answer: 42});
  assert.equal(refreshed, 2);
  const verdictOf = ({public_key: signer, message, signature}, verdict) =>
    ({request: {op: 'verdict', signer, signature, verdict}, keys: [bytesOf(message)]});
  const lookUp = {request: {op: 'beginLookUp'}, keys};
  assert.deepEqual(seen, [lookUp, verdictOf(right, 'right'), lookUp, verdictOf(wrong, 'wrong'), lookUp]);
});

test('gives up where there is another manifest every time', async () => {
  const seen = coreThatAsks(Array(100).fill(vectors.ed25519[0]));
  await assert.rejects(callWithSignatures({}, {op: 'sync'}), ({code}) => code === 'protocol');
  assert(seen.length <= 10);
});
