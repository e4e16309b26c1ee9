#include "host/server/connections/request_head.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "host/server/routes/problem.h"
#include "src/ascii.h"
#include "src/hex.h"

namespace blindfuse {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kMethods[] = {"GET",   "HEAD",    "POST",  "PUT",  "DELETE",
                                         "PATCH", "OPTIONS", "TRACE", "QUERY"};

[[noreturn]] void refuse(std::string detail) {
  throw Refusal(ProblemKind::kMalformedRequest, std::move(detail));
}

bool is_token_character(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         kMarks.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Lines end with CRLF and hold no other control characters than tabs. A client that speaks
// something else, TLS perhaps, is found out by its first bytes. A CR at the very end may still get
// its LF.
void check_characters(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    if ((c >= 0x20 && c != 0x7f) || c == '\t') continue;
    const bool line_feed = c == '\n' && i > 0 && bytes[i - 1] == '\r';
    const bool carriage_return = c == '\r' && (i + 1 == bytes.size() || bytes[i + 1] == '\n');
    if (!line_feed && !carriage_return) {
      refuse("a request's lines are text and end with CRLF");
    }
  }
}

void check_sizes(std::string_view bytes, bool whole) {
  const size_t line = std::min(bytes.find(kLineEnd), bytes.size());
  // Room for the longest method and version beside the target.
  constexpr size_t kRequestLineBytesMax = kTargetBytesMax + 20;
  if (line > kRequestLineBytesMax) {
    throw Refusal(ProblemKind::kTargetTooLong,
                  "a request target has at most " + std::to_string(kTargetBytesMax) + " bytes");
  }
  if (bytes.size() > kHeadBytesMax || (!whole && bytes.size() == kHeadBytesMax)) {
    throw Refusal(ProblemKind::kHeaderTooLarge, "request line and header have at most " +
                                                    std::to_string(kHeadBytesMax) +
                                                    " bytes together");
  }
}

// What is no percent-encoding stays as it is: no route has it.
std::string decode_path(std::string_view target) {
  const std::string_view encoded = target.substr(0, target.find_first_of("?#"));
  std::string path;
  for (size_t i = 0; i < encoded.size(); ++i) {
    const auto byte = encoded[i] == '%' ? decode_hex(encoded.substr(i + 1, 2)) : std::nullopt;
    if (byte && byte->size() == 1) {
      path += *byte;
      i += 2;
    } else {
      path += encoded[i];
    }
  }
  return path;
}

void read_request_line(std::string_view line, RequestHead& head, bool& needs_host) {
  const size_t target_at = line.find(' ') + 1;
  const size_t version_at = line.rfind(' ') + 1;
  if (target_at == 0 || version_at <= target_at) {
    refuse("a request begins with a line of method, target and version");
  }
  const std::string_view method = line.substr(0, target_at - 1);
  const std::string_view target = line.substr(target_at, version_at - 1 - target_at);
  const std::string_view version = line.substr(version_at);
  if (!is_token(method)) refuse("the request's method is not a word");
  if (!target.starts_with('/') || target.find_first_of(" \t") != std::string_view::npos) {
    refuse("the request's target is not a path");
  }
  if (target.size() > kTargetBytesMax) {
    throw Refusal(ProblemKind::kTargetTooLong,
                  "a request target has at most " + std::to_string(kTargetBytesMax) + " bytes");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (!version.starts_with("HTTP/")) refuse("the request line does not end with HTTP/1.1");
    throw Refusal(ProblemKind::kUnsupportedVersion, "this server speaks HTTP/1.1 and HTTP/1.0");
  }
  if (std::ranges::find(kMethods, method) == std::end(kMethods)) {
    throw Refusal(ProblemKind::kUnknownMethod, "this server does not know the request's method");
  }
  head.method = method;
  head.path = decode_path(target);
  head.is_http_1_0 = version == "HTTP/1.0";
  head.wants_close = head.is_http_1_0;
  needs_host = version == "HTTP/1.1";
}

uint64_t parse_content_length(std::string_view value) {
  uint64_t length = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, length);
  if (error != std::errc() || rest != end) refuse("Content-Length is not a number of bytes");
  return length;
}

class HeaderReader {
 public:
  explicit HeaderReader(RequestHead& head) : head_(head) {}

  // A line that begins `at` bytes into the head.
  void read(std::string_view line, size_t at) {
    if (++line_count_ > kHeaderLinesMax || line.size() > kHeaderLineBytesMax) {
      throw Refusal(ProblemKind::kHeaderTooLarge,
                    "a request has at most " + std::to_string(kHeaderLinesMax) +
                        " header lines of at most " + std::to_string(kHeaderLineBytesMax) +
                        " bytes");
    }
    const size_t colon = line.find(':');
    // No white space before the colon, and no line that goes on with the one before.
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
      refuse("a header line is not of the form name: value");
    }
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trim(line.substr(colon + 1));
    if (equal_ignoring_case(name, "Host")) {
      if (seen_host_) refuse("there are two Host headers");
      seen_host_ = true;
    } else if (equal_ignoring_case(name, "Content-Length")) {
      if (head_.content_length) refuse("there are two Content-Length headers");
      head_.content_length = parse_content_length(value);
    } else if (equal_ignoring_case(name, "Transfer-Encoding")) {
      if (head_.chunked || !equal_ignoring_case(value, "chunked")) {
        refuse("the only Transfer-Encoding that this server takes is chunked");
      }
      head_.chunked = true;
    } else if (equal_ignoring_case(name, "Connection")) {
      read_connection(value);
    } else if (equal_ignoring_case(name, "Range")) {
      read_once(head_.range, name, value);
      head_.range_name_at = at;
    } else if (equal_ignoring_case(name, "Expect")) {
      if (head_.expect_name_at != 0) refuse("there are two Expect headers");
      head_.wants_continue = equal_ignoring_case(value, "100-continue");
      head_.expect_name_at = at;
    } else if (equal_ignoring_case(name, "Content-Type")) {
      read_once(head_.content_type, name, value);
    } else if (equal_ignoring_case(name, "Content-Encoding")) {
      read_once(head_.content_encoding, name, value);
    } else if (equal_ignoring_case(name, "Authorization")) {
      read_once(head_.authorization, name, value);
    } else if (equal_ignoring_case(name, "Origin")) {
      read_once(head_.origin, name, value);
    }
  }

  void finish(bool needs_host) const {
    if (needs_host && !seen_host_) refuse("an HTTP/1.1 request has a Host header");
    if (head_.chunked && head_.content_length) {
      refuse("a request has Content-Length or Transfer-Encoding, not both");
    }
  }

 private:
  // Of two, one program would take the first and another the second.
  static void read_once(std::string& into, std::string_view name, std::string_view value) {
    if (!into.empty()) refuse("there are two " + std::string(name) + " headers");
    into = value;
  }

  void read_connection(std::string_view options) {
    for (size_t begin = 0; begin <= options.size();) {
      const size_t end = std::min(options.find(',', begin), options.size());
      if (equal_ignoring_case(trim(options.substr(begin, end - begin)), "close")) {
        head_.wants_close = true;
      }
      begin = end + 1;
    }
  }

  RequestHead& head_;
  size_t line_count_ = 0;
  bool seen_host_ = false;
};

}  // namespace

std::optional<RequestHead> parse_request_head(std::string_view bytes) {
  const size_t end = bytes.find(kHeadEnd);
  const bool whole = end != std::string_view::npos;
  const std::string_view text = bytes.substr(0, whole ? end + kHeadEnd.size() : bytes.size());
  check_characters(text);
  check_sizes(text, whole);
  if (!whole) return std::nullopt;

  RequestHead head;
  head.byte_count = text.size();
  bool needs_host = false;
  HeaderReader header(head);
  for (size_t at = 0; at + kLineEnd.size() < text.size();) {
    const size_t line_end = text.find(kLineEnd, at);
    const std::string_view line = text.substr(at, line_end - at);
    if (at == 0) {
      read_request_line(line, head, needs_host);
    } else {
      header.read(line, at);
    }
    at = line_end + kLineEnd.size();
  }
  header.finish(needs_host);
  return head;
}

}  // namespace blindfuse
