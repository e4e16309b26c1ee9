// The bodies of query requests and their responses (docs/HTTP_API.md): queries, one after another,
// as bytes or in base64 in JSON. No function here trusts its input. The caller limits a body's size
// with body_bytes_max.
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

// The limits of a request to one database.
struct QueryBodyLimits {
  uint64_t query_bytes = 0;  // of every query, at least 1
  uint64_t query_count_max = 1;

  // The longest body that can be valid. For JSON this allows for some white space around every
  // query.
  uint64_t body_bytes_max(BodyFormat format) const;
  // The number of queries in a valid body of this length: at least 1.
  uint64_t query_count(BodyFormat format, uint64_t body_bytes) const;
};

// Checks that a binary body of this length can be valid: 1 .. query_count_max whole queries. Throws
// InputError otherwise.
void check_binary_length(uint64_t body_bytes, const QueryBodyLimits& limits);

// The queries of a body, one after another, within the body. Those in JSON are decoded in place.
// Throws InputError, which names the query (the first is query 1) and says what would be right. The
// message never quotes the body.
std::span<const uint8_t> read_query_body(BodyFormat format, std::span<char> body,
                                         const QueryBodyLimits& limits);

// The memory that write_response_body takes for this many responses, including the given ones.
uint64_t response_memory_bytes(BodyFormat format, uint64_t count, uint64_t response_bytes);

// The body for responses of response_bytes each, one after another.
std::string write_response_body(BodyFormat format, std::string responses, uint64_t response_bytes);

}  // namespace blindfuse
