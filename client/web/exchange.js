// One HTTP request, waited for: the client library is synchronous, and a worker may be.

const timeoutMs = 300_000; // a server may compute for long

// {method, url, range, apiKey, body} -> {status, contentType, retryAfter, contentRange, body}, or status 0 and what
// the browser says. Sends no cookies to other origins, and nothing of the page but its origin.
export function exchange({method, url, range, apiKey, body}) {
  const request = new XMLHttpRequest();
  try {
    request.open(method, url, false);
    request.responseType = 'arraybuffer';
    request.timeout = timeoutMs;
    if (range) request.setRequestHeader('Range', range);
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
