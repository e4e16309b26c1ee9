#include "host/server/routes/query_body.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "src/base/base64.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using nlohmann::json;

// The frame has room for {"queries":[]} and, around every query, for quotes, a comma, and a
// pretty-printer's line.
constexpr uint64_t kJsonFrameBytes = 1024;
constexpr uint64_t kJsonQueryFrameBytes = 64;

// The frame is {"responses":[]} and a line's end; around every response, quotes and a comma.
constexpr uint64_t kResponsesFrameBytes = 17;
constexpr uint64_t kResponseFrameBytes = 3;

uint64_t frame_bytes_max(const QueryBodyLimits& limits) {
  return kJsonFrameBytes + limits.query_count_max * kJsonQueryFrameBytes;
}

constexpr const char* kExpectedJson = "the body must be {\"queries\": [\"<base64>\", ...]}";

// Puts the queries of a body in JSON over it, from its beginning: each is shorter than its text, so
// that none reaches a text that is still to be read.
class QueriesInPlace {
 public:
  QueriesInPlace(std::span<char> body, const QueryBodyLimits& limits)
      : bytes_(reinterpret_cast<uint8_t*>(body.data()), body.size()), limits_(limits) {}

  uint64_t count() const { return count_; }
  std::span<const uint8_t> queries() const { return bytes_.first(count_ * limits_.query_bytes); }

  // The base64 of the next query. Throws InputError.
  void append(std::string_view text) {
    const auto query = bytes_.subspan(count_ * limits_.query_bytes, limits_.query_bytes);
    ++count_;
    if (decode_base64_into(text, query)) return;
    throw InputError("query " + std::to_string(count_) + " is not base64 of " +
                     std::to_string(limits_.query_bytes) +
                     " bytes (RFC 4648 section 4, with padding)");
  }

 private:
  const std::span<uint8_t> bytes_;
  const QueryBodyLimits& limits_;
  uint64_t count_ = 0;
};

// Takes the parser's events one by one, so that nothing is built for other members, however deep or
// long.
class QueryBodyReader : public nlohmann::json_sax<json> {
 public:
  QueryBodyReader(const QueryBodyLimits& limits, QueriesInPlace& queries)
      : limits_(limits), queries_(queries) {}

  bool start_object(size_t) override { return expect(State::kStart, State::kObject); }

  bool key(std::string& name) override {
    if (state_ == State::kAfterArray && name == "queries") {
      throw InputError("\"queries\" is given twice");
    }
    if (name != "queries") throw InputError(std::string("unknown member; ") + kExpectedJson);
    return expect(State::kObject, State::kKey);
  }

  bool start_array(size_t) override { return expect(State::kKey, State::kArray); }

  bool string(std::string& text) override {
    expect(State::kArray, State::kArray);
    if (queries_.count() == limits_.query_count_max) {
      throw InputError("more than " + std::to_string(limits_.query_count_max) +
                       " queries in one request");
    }
    const uint64_t expected = base64_length(limits_.query_bytes);
    if (text.size() != expected) {
      throw InputError("query " + std::to_string(queries_.count() + 1) + " has " +
                       std::to_string(text.size()) + " base64 characters; expected " +
                       std::to_string(expected) + " for " + std::to_string(limits_.query_bytes) +
                       " bytes");
    }
    queries_.append(text);
    return true;
  }

  bool end_array() override { return expect(State::kArray, State::kAfterArray); }

  bool end_object() override {
    expect(State::kAfterArray, State::kEnd);
    if (queries_.count() == 0) throw InputError("there is no query in the request");
    return true;
  }

  bool null() override { return unexpected(); }
  bool boolean(bool) override { return unexpected(); }
  bool number_integer(int64_t) override { return unexpected(); }
  bool number_unsigned(uint64_t) override { return unexpected(); }
  bool number_float(double, const std::string&) override { return unexpected(); }
  bool binary(json::binary_t&) override { return unexpected(); }

  // The parser's own message quotes the body, so only the place is taken from it.
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw InputError("not JSON at byte " + std::to_string(position) + "; " + kExpectedJson);
  }

 private:
  enum class State { kStart, kObject, kKey, kArray, kAfterArray, kEnd };

  bool expect(State now, State next) {
    if (state_ != now) unexpected();
    state_ = next;
    return true;
  }

  [[noreturn]] bool unexpected() const { throw InputError(kExpectedJson); }

  const QueryBodyLimits& limits_;
  State state_ = State::kStart;
  QueriesInPlace& queries_;
};

// The general parser keeps a string, a number or what is between them several times over before it
// tells of it, and reads a number of many digits slowly. Escapes may make a string longer than what
// it means: ever so often, but not all of it. Outside of strings, a body has no more than its
// frame.
void check_lengths(std::string_view body, uint64_t string_max, uint64_t frame_max) {
  uint64_t begin = 0;
  uint64_t frame = 0;
  bool is_inside = false;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '"') {
      is_inside = !is_inside;
      begin = i;
    } else if (!is_inside) {
      ++frame;
    } else if (body[i] == '\\') {
      ++i;
    }
    if (is_inside && i - begin > string_max) {
      throw InputError("a string has more than " + std::to_string(string_max) +
                       " characters, with escapes; " + kExpectedJson);
    }
    if (frame > frame_max) {
      throw InputError("there are more than " + std::to_string(frame_max) +
                       " bytes outside of strings; " + kExpectedJson);
    }
  }
}

// A body as nearly every client writes it, whose strings hold base64 and no escapes, is taken apart
// by the lengths that its parts must have: the strings are most of it, and the general parser would
// look at each character and copy it. Anything else is left to that one, and to its messages.
class PlainBody {
 public:
  PlainBody(std::string_view body, const QueryBodyLimits& limits) : rest_(body), limits_(limits) {}

  // The base64 of each query; nothing when the body is not plain.
  std::optional<std::vector<std::string_view>> split() {
    const uint64_t length = base64_length(limits_.query_bytes);
    std::vector<std::string_view> texts;
    if (!take("{") || !take("\"queries\"") || !take(":") || !take("[")) return std::nullopt;
    do {
      if (texts.size() == limits_.query_count_max || !take("\"")) return std::nullopt;
      if (rest_.size() <= length || rest_[length] != '"') return std::nullopt;
      texts.push_back(rest_.substr(0, length));
      // An escape makes this another text than it looks.
      if (texts.back().find('\\') != std::string_view::npos) return std::nullopt;
      rest_.remove_prefix(length + 1);
    } while (take(","));
    if (!take("]") || !take("}")) return std::nullopt;
    skip_space();
    if (!rest_.empty()) return std::nullopt;
    return texts;
  }

 private:
  void skip_space() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  // Skips the white space before the token, too. None is skipped after it, where a string may
  // begin.
  bool take(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::string_view rest_;
  const QueryBodyLimits& limits_;
};

}  // namespace

std::string_view content_type_of(BodyFormat format) {
  return format == BodyFormat::kJson ? "application/json" : "application/octet-stream";
}

uint64_t QueryBodyLimits::body_bytes_max(BodyFormat format) const {
  if (format == BodyFormat::kBinary) return query_count_max * query_bytes;
  return frame_bytes_max(*this) + query_count_max * base64_length(query_bytes);
}

uint64_t QueryBodyLimits::query_count(BodyFormat format, uint64_t body_bytes) const {
  const uint64_t each = format == BodyFormat::kBinary ? query_bytes : base64_length(query_bytes);
  return std::clamp<uint64_t>(body_bytes / each, 1, query_count_max);
}

void check_binary_length(uint64_t body_bytes, const QueryBodyLimits& limits) {
  const uint64_t count = body_bytes / limits.query_bytes;
  if (body_bytes % limits.query_bytes != 0 || count < 1 || count > limits.query_count_max) {
    throw InputError("the body has " + std::to_string(body_bytes) + " bytes; expected 1 to " +
                     std::to_string(limits.query_count_max) + " queries of " +
                     std::to_string(limits.query_bytes) + " bytes each");
  }
}

std::span<const uint8_t> read_query_body(BodyFormat format, std::span<char> body,
                                         const QueryBodyLimits& limits) {
  if (format == BodyFormat::kBinary) {
    check_binary_length(body.size(), limits);
    return {reinterpret_cast<const uint8_t*>(body.data()), body.size()};
  }
  const std::string_view text(body.data(), body.size());
  QueriesInPlace queries(body, limits);
  if (const auto texts = PlainBody(text, limits).split()) {
    for (const std::string_view query : *texts) queries.append(query);
  } else {
    check_lengths(text, 2 * base64_length(limits.query_bytes), frame_bytes_max(limits));
    // The parser takes a byte of zero for the end.
    if (const size_t zero = text.find('\0'); zero != text.npos) {
      throw InputError("not JSON at byte " + std::to_string(zero + 1) + "; " + kExpectedJson);
    }
    QueryBodyReader reader(limits, queries);
    // The handler throws for any error. The parser keeps its own stack of open brackets on the
    // heap, not ours.
    json::sax_parse(text, &reader);
  }
  return queries.queries();
}

uint64_t response_memory_bytes(BodyFormat format, uint64_t count, uint64_t response_bytes) {
  const uint64_t binary = count * response_bytes;
  if (format == BodyFormat::kBinary) return binary;
  return binary + kResponsesFrameBytes +
         count * (base64_length(response_bytes) + kResponseFrameBytes);
}

std::string write_response_body(BodyFormat format, std::string responses, uint64_t response_bytes) {
  if (format == BodyFormat::kBinary) return responses;
  const std::span bytes(reinterpret_cast<const uint8_t*>(responses.data()), responses.size());
  std::string text = "{\"responses\":[";
  text.reserve(kResponsesFrameBytes + bytes.size() / response_bytes *
                                          (base64_length(response_bytes) + kResponseFrameBytes));
  for (size_t at = 0; at < bytes.size(); at += response_bytes) {
    if (at > 0) text += ',';
    text += '"';
    append_base64(bytes.subspan(at, response_bytes), text);
    text += '"';
  }
  text += "]}\n";
  return text;
}

}  // namespace blindfuse
