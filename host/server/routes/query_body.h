// The bodies of query requests and their responses (docs/HTTP_API.md): queries, one after another,
// as they are or in base64 in JSON. Nothing here trusts its input; a body's size is the
// caller's to bound, by body_bytes_max.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace blindfuse {

enum class BodyFormat {
  kBinary,  // application/octet-stream
  kJson,    // application/json
};

// The Content-Type of a format, without parameters.
std::string_view content_type_of(BodyFormat format);

// What a request to one database may carry.
struct QueryBodyLimits {
  uint64_t query_bytes = 0;  // of every query, at least 1
  uint64_t query_count_max = 1;

  // The longest body that can be right. For JSON that allows for some white space around every
  // query.
  uint64_t body_bytes_max(BodyFormat format) const;
  // How many queries a body of this length holds, if it is right: at least 1.
  uint64_t query_count(BodyFormat format, uint64_t body_bytes) const;
};

// Whether a binary body of this length can be right: 1 .. query_count_max whole queries. Throws
// InputError otherwise.
void check_binary_length(uint64_t body_bytes, const QueryBodyLimits& limits);

// The queries of a body, one after another, within the body: those in JSON are decoded over it.
// Throws InputError, naming the query (the first is query 1) and what would be right; never quotes
// the body.
std::span<const uint8_t> read_query_body(BodyFormat format, std::span<char> body,
                                         const QueryBodyLimits& limits);

// The memory that write_response_body takes for this many responses, those that it is given
// included.
uint64_t response_memory_bytes(BodyFormat format, uint64_t count, uint64_t response_bytes);

// The body for responses of response_bytes each, one after another.
std::string write_response_body(BodyFormat format, std::string responses, uint64_t response_bytes);

}  // namespace blindfuse
