#include "client/web/core/host.h"

#include <emscripten/emscripten.h>

#include <array>

// The reply stays in JavaScript until its parts have been fetched, one after another. Pointers
// arrive as signed numbers: `>>> 0`, and no slice() of the heap, which would count a negative one
// from the end.
// clang-format off
EM_JS(int, blindfuse_host_exchange,
      (const char* method, const char* url, const char* range, const char* api_key,
       const uint8_t* body, size_t size, double body_bytes_max, double problem_bytes_max,
       double timeout_ms), {
  const reply = Module["exchange"]({
    method: UTF8ToString(method),
    url: UTF8ToString(url),
    range: UTF8ToString(range),
    apiKey: UTF8ToString(api_key),
    body: size ? HEAPU8.subarray(body >>> 0, (body >>> 0) + size).slice() : null,
    timeoutMs: timeout_ms
  });
  const came = reply.body || new Uint8Array(0);
  const succeeded = reply.status === 200 || reply.status === 206;
  const most = succeeded ? body_bytes_max : problem_bytes_max;
  const utf8 = new TextEncoder();
  Module["reply"] = [
    utf8.encode(reply.error || ""), utf8.encode(reply.contentType || ""),
    utf8.encode(reply.retryAfter || ""), utf8.encode(reply.contentRange || ""),
    came.subarray(0, Math.min(most, came.length))
  ];
  Module["replyBytes"] = came.length;
  return reply.status;
});

EM_JS(size_t, blindfuse_host_reply_size, (int part), { return Module["reply"][part].length; });

EM_JS(void, blindfuse_host_reply_take, (int part, uint8_t* to), {
  HEAPU8.set(Module["reply"][part], to >>> 0);
  Module["reply"][part] = null;
});

EM_JS(double, blindfuse_host_reply_bytes, (), { return Module["replyBytes"]; });

EM_JS(void, blindfuse_host_progress, (int stage, double done, double total), {
  Module["progress"](stage, done, total);
});
// clang-format on

namespace blindfuse::web {
namespace {

template <class Bytes>
Bytes take_part(int part) {
  Bytes bytes(blindfuse_host_reply_size(part), typename Bytes::value_type{});
  blindfuse_host_reply_take(part, reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

}  // namespace

ExchangeReply exchange(const ExchangeRequest& request) {
  ExchangeReply reply;
  reply.status = blindfuse_host_exchange(
      request.method.c_str(), request.url.c_str(), request.range.c_str(), request.api_key.c_str(),
      request.body.data(), request.body.size(), static_cast<double>(request.body_bytes_max),
      static_cast<double>(request.problem_bytes_max), static_cast<double>(request.timeout.count()));
  reply.body_bytes = static_cast<uint64_t>(blindfuse_host_reply_bytes());
  reply.error = take_part<std::string>(0);
  reply.content_type = take_part<std::string>(1);
  reply.retry_after = take_part<std::string>(2);
  reply.content_range = take_part<std::string>(3);
  reply.body = take_part<std::vector<uint8_t>>(4);
  return reply;
}

void tell_progress(const ClientProgress& progress) {
  blindfuse_host_progress(static_cast<int>(progress.stage), static_cast<double>(progress.done),
                          static_cast<double>(progress.total));
}

}  // namespace blindfuse::web
