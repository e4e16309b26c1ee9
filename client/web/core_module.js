// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// The WebAssembly module, for those who ask it: worker.js, and the workers that help it.

import createCore from './blindfuse_core.js';

// The module is compiled from bytes and not from a stream: a static server may not know the type of .wasm. Throws as
// callCore() does when the bytes do not come, all within timeoutMs.
export async function compileCore(timeoutMs) {
  const url = new URL('./blindfuse_core.wasm', import.meta.url);
  let bytes;
  try {
    const response = await fetch(url, {credentials: 'same-origin', signal: AbortSignal.timeout(timeoutMs)});
    if (!response.ok) throw new Error(`status ${response.status}`);
    bytes = await response.arrayBuffer();
  } catch (error) {
    throw {
      code: 'connection',
      message: `${url} does not load (${error.message}): check that this device is online, and that all of the client's`
        + ' files are served',
    };
  }
  return WebAssembly.compile(bytes);
}

// `host` has what the module asks of its page (core/host.h).
export function startCore(module, host) {
  return new Promise((resolve, reject) => {
    const core = {
      instantiateWasm(imports, receive) {
        WebAssembly.instantiate(module, imports).then((instance) => receive(instance, module), reject);
        return {};
      },
      printErr: (line) => {
        core.lastComplaint = line;
      },
      ...host,
    };
    createCore(core).then(resolve, reject);
  });
}

// An exception is then not an answer: the module is broken, and not to be asked again.
export class BrokenCore extends Error {}

// Asks (core/core.cpp). `keys` are byte arrays, copied, and the copy wiped; the answer's `bytes` are the caller's to
// wipe. Throws the error of the answer, as it is.
export function callCore(core, request, keys = []) {
  const text = new TextEncoder().encode(JSON.stringify({...request, keys: keys.map((key) => key.length)}));
  const size = keys.reduce((sum, key) => sum + key.length, 0);
  const at = core._malloc(text.length + size + 1) >>> 0; // pointers come as signed numbers
  if (at === 0) throw {code: 'resource', message: 'the browser gives no more memory; close other pages'};
  let succeeded;
  let isBroken = true;
  try {
    core.HEAPU8.set(text, at);
    let end = at + text.length;
    for (const key of keys) {
      core.HEAPU8.set(key, end);
      end += key.length;
    }
    succeeded = core._blindfuse_call(at, text.length, at + text.length, size);
    isBroken = false;
  } catch (error) {
    throw new BrokenCore([error?.message ?? error, core.lastComplaint].filter(Boolean).join(': '));
  } finally {
    core.HEAPU8.fill(0, at, at + text.length + size);
    if (!isBroken) core._free(at);
  }
  const from = core._blindfuse_reply() >>> 0;
  const reply = JSON.parse(new TextDecoder().decode(
    core.HEAPU8.subarray(from, from + core._blindfuse_reply_size())));
  if (!succeeded) {
    core._blindfuse_forget();
    throw {...reply.error, info: reply.info, prepared: reply.prepared};
  }
  const first = core._blindfuse_bytes() >>> 0;
  reply.bytes = core.HEAPU8.subarray(first, first + core._blindfuse_bytes_size()).slice();
  core._blindfuse_forget();
  return reply;
}
