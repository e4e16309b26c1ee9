// Bodies of query requests. The first byte chooses the format; what is accepted must be whole
// queries, and must come out the same when it is written the other way.
#include <cstddef>
#include <cstdint>
#include <string>

#include "host/server/routes/query_body.h"
#include "src/base/base64.h"
#include "src/base/errors.h"

namespace {

using namespace blindfuse;

constexpr QueryBodyLimits kLimits{.query_bytes = 7, .query_count_max = 3};

std::string parse(BodyFormat format, std::string body) {
  const auto queries = read_query_body(format, body, kLimits);
  return {reinterpret_cast<const char*>(queries.data()), queries.size()};
}

std::string as_json(const std::string& queries) {
  std::string body = "{\"queries\":[";
  for (size_t at = 0; at < queries.size(); at += kLimits.query_bytes) {
    body += at == 0 ? "\"" : ",\"";
    body +=
        encode_base64({reinterpret_cast<const uint8_t*>(queries.data()) + at, kLimits.query_bytes});
    body += "\"";
  }
  return body + "]}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const BodyFormat format = data[0] % 2 == 0 ? BodyFormat::kBinary : BodyFormat::kJson;
  const std::string body(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string queries;
  try {
    queries = parse(format, body);
  } catch (const InputError&) {
    return 0;
  }
  invariant(!queries.empty() && queries.size() % kLimits.query_bytes == 0 &&
                queries.size() <= kLimits.query_count_max * kLimits.query_bytes,
            "what is accepted is a number of whole queries");
  invariant(parse(BodyFormat::kBinary, queries) == queries, "as binary");
  invariant(parse(BodyFormat::kJson, as_json(queries)) == queries, "as JSON");
  return 0;
}
