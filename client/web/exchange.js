// Copyright the blindfuse authors. SPDX-License-Identifier: Apache-2.0

// Sends one HTTP request and waits for it: the client library is synchronous, and a worker may wait.

// {method, url, range, apiKey, body, timeoutMs, isFresh} -> {status, contentType, retryAfter, contentRange, body}, or
// status 0 and what the browser says: TimeoutError when not all of the answer came within timeoutMs, which is not 0.
// Sends no cookies to other origins, and nothing of the page except its origin. With isFresh the answer does not come
// from the browser's own cache, which is not used for a request that has a condition. No answer has the tag of this one.
//
// The browser may send the same bytes more than once, a POST's, too: over a new connection when the one it kept was
// closed, or where a redirect points. A page cannot keep it from doing so.
export function exchange({method, url, range, apiKey, body, timeoutMs, isFresh}) {
  const request = new XMLHttpRequest();
  try {
    request.open(method, url, false);
    request.responseType = 'arraybuffer';
    request.timeout = timeoutMs;
    if (range) request.setRequestHeader('Range', range);
    if (isFresh) request.setRequestHeader('If-None-Match', '"none"');
    if (apiKey) request.setRequestHeader('Authorization', 'Bearer ' + apiKey);
    if (body) request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.send(body);
  } catch (error) {
    const offline = self.navigator?.onLine === false;
    return {status: 0, error: offline ? 'this device is offline' : error.name};
  }
  return {
    status: request.status,
    contentType: request.getResponseHeader('Content-Type'),
    retryAfter: request.getResponseHeader('Retry-After'),
    contentRange: request.status === 206 ? request.getResponseHeader('Content-Range') : null,
    body: new Uint8Array(request.response ?? new ArrayBuffer(0)),
  };
}
