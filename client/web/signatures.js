// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// Signatures, which the browser checks for the client library: it is asynchronous, and the library does not wait.

import {callCore} from './core_module.js';

const manifestsMax = 5; // a server may send this many, one after another, for one call

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (digits) => parseInt(digits, 16));

// 'right', 'wrong', or 'unable': where the browser knows no Ed25519, or the page did not come by https.
export async function verdictOn({signer, signature}, message) {
  const {subtle} = self.crypto;
  if (!subtle) return 'unable';
  try {
    const key = await subtle.importKey('raw', bytesOf(signer), {name: 'Ed25519'}, false, ['verify']);
    return await subtle.verify({name: 'Ed25519'}, key, bytesOf(signature), message) ? 'right' : 'wrong';
  } catch (error) {
    // Any other error means that the key is not valid.
    return error.name === 'NotSupportedError' ? 'unable' : 'wrong';
  }
}

// callCore(), for requests in which the library may meet a manifest. refresh() is waited for before the library hears
// of a signature.
export async function callWithSignatures(core, request, keys = [], refresh = async () => {}) {
  for (let attempt = 0; attempt < manifestsMax; attempt++) {
    const reply = callCore(core, request, keys);
    if (!reply.unchecked) return reply;
    const verdict = await verdictOn(reply.unchecked, reply.bytes);
    await refresh();
    callCore(core, {op: 'verdict', ...reply.unchecked, verdict}, [reply.bytes]);
  }
  throw {code: 'protocol', message: 'the server sends another manifest every time that it is asked; try again later'};
}
