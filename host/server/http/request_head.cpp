// Boost.Beast parses a head. This file refuses faults that Beast accepts: lines that continue the
// previous one, headers that come twice, lists of transfer codings, sizes.

#include "host/server/http/request_head.h"

#include <algorithm>
#include <array>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <charconv>
#include <cstring>
#include <limits>

#include "host/server/http/response.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"

namespace blindfuse::http {

namespace {

namespace beast = boost::beast;
using Parser = beast::http::request_parser<beast::http::empty_body>;
using Fields = beast::http::fields;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::array<std::string_view, 9> kMethods = {"GET",   "HEAD",    "POST",  "PUT",  "DELETE",
                                                      "PATCH", "OPTIONS", "TRACE", "QUERY"};
// If one of these came twice, one program would take the first and another the second.
constexpr std::array<std::string_view, 9> kSingleHeaders = {
    "Host",         "Content-Length",   "Transfer-Encoding", "Expect", "Range",
    "Content-Type", "Content-Encoding", "Authorization",     "Origin"};

[[noreturn]] void refuse(std::string detail) { throw Error(400, std::move(detail)); }

std::string_view view_of(boost::string_view text) { return {text.data(), text.size()}; }

// Lines end with CRLF and hold no other control characters than tabs. The first bytes show that a
// client speaks another protocol, such as TLS. A CR at the very end may still get its LF.
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

[[noreturn]] void refuse_target() {
  throw Error(414, "a request target has at most " + std::to_string(kTargetBytesMax) + " bytes");
}

// `size` counts empty lines before the head, too.
void check_sizes(std::string_view bytes, size_t size, bool whole) {
  const size_t line = std::min(bytes.find(kLineEnd), bytes.size());
  // Room for the longest method and version next to the target.
  constexpr size_t kRequestLineBytesMax = kTargetBytesMax + 20;
  if (line > kRequestLineBytesMax) refuse_target();
  if (size > kHeadBytesMax || (!whole && size == kHeadBytesMax)) {
    throw Error(431, "request line and header have at most " + std::to_string(kHeadBytesMax) +
                         " bytes together");
  }
}

// Checks the lines of a whole head.
void check_lines(std::string_view head) {
  size_t count = 0;
  for (size_t at = head.find(kLineEnd) + 2; at + 2 < head.size(); ++count) {
    const size_t end = head.find(kLineEnd, at);
    if (count == kHeaderLinesMax || end - at > kHeaderLineBytesMax) {
      throw Error(431, "a request has at most " + std::to_string(kHeaderLinesMax) +
                           " header lines of at most " + std::to_string(kHeaderLineBytesMax) +
                           " bytes");
    }
    if (head[at] == ' ' || head[at] == '\t') {
      refuse("a header line is not of the form name: value");
    }
    at = end + 2;
  }
}

[[noreturn]] void refuse_version(std::string_view line) {
  const bool is_http = line.substr(line.rfind(' ') + 1).starts_with("HTTP/");
  if (is_http && std::ranges::count(line, ' ') == 2) {
    throw Error(505, "this server speaks HTTP/1.1 and HTTP/1.0");
  }
  refuse("a request begins with a line of method, target and version");
}

[[noreturn]] void refuse_syntax(const beast::error_code& error, std::string_view head) {
  using Reason = beast::http::error;
  if (error == Reason::bad_version) refuse_version(head.substr(0, head.find(kLineEnd)));
  if (error == Reason::bad_method || error == Reason::bad_target) {
    refuse("a request begins with a line of method, target and version");
  }
  if (error == Reason::bad_content_length) {
    refuse("Content-Length is not a number of bytes, or is given twice");
  }
  if (error == Reason::bad_transfer_encoding) {
    refuse("a request has Content-Length or Transfer-Encoding: chunked, not both");
  }
  refuse("a header line is not of the form name: value");
}

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Invalid percent-encoding stays as it is: no route has it.
std::string undo_percent_encoding(std::string_view encoded) {
  std::string text;
  for (size_t i = 0; i < encoded.size(); ++i) {
    const auto byte = encoded[i] == '%' ? decode_hex(encoded.substr(i + 1, 2)) : std::nullopt;
    if (byte && byte->size() == 1) {
      text += *byte;
      i += 2;
    } else {
      text += encoded[i];
    }
  }
  return text;
}

// The host of a target in absolute-form, http://host/path, as proxies are sent it (RFC 9112,
// section 3.2.2). Leaves the path and the query string. Empty if the target has no scheme.
std::string_view take_host(std::string_view& target) {
  const size_t scheme = target.find("://");
  const std::string_view name = target.substr(0, std::min(scheme, target.size()));
  if (!equal_ignoring_case(name, "http") && !equal_ignoring_case(name, "https")) return {};
  target.remove_prefix(scheme + 3);
  const std::string_view host = target.substr(0, target.find_first_of("/?#"));
  if (host.empty() || host.find('@') != host.npos) refuse("the request's target has no host");
  target.remove_prefix(host.size());
  return host;
}

void read_request_line(const Parser::value_type& request, RequestHead& head) {
  std::string_view target = view_of(request.target());
  if (target.size() > kTargetBytesMax) refuse_target();
  head.host = take_host(target);
  if (head.host.empty() && !target.starts_with('/')) {
    refuse("the request's target is neither a path nor an HTTP URL");
  }
  if (std::ranges::count(target, '?') > 1) {
    refuse("a request target has one question mark at most");
  }
  if (request.version() != 11 && request.version() != 10) {
    throw Error(505, "this server speaks HTTP/1.1 and HTTP/1.0");
  }
  head.method = view_of(request.method_string());
  if (std::ranges::find(kMethods, head.method) == kMethods.end()) {
    throw Error(501, "this server does not know the request's method");
  }
  const std::string_view named = target.substr(0, target.find('#'));
  const size_t question = std::min(named.find('?'), named.size());
  head.path = question == 0 ? "/" : undo_percent_encoding(named.substr(0, question));
  if (question < named.size()) head.query = named.substr(question + 1);
  head.is_http_1_0 = request.version() == 10;
}

void read_header(const Parser::value_type& request, RequestHead& head) {
  for (const auto name : kSingleHeaders) {
    if (request.count({name.data(), name.size()}) > 1) {
      refuse("there are two " + std::string(name) + " headers");
    }
  }
  for (const auto& field : request) {
    head.headers.emplace_back(view_of(field.name_string()), view_of(field.value()));
  }
  if (!head.is_http_1_0 && request.count(beast::http::field::host) == 0) {
    refuse("an HTTP/1.1 request needs a Host header");
  }
  if (head.host.empty()) head.host = head.header("Host");
  if (!std::ranges::all_of(head.header("Content-Length"), is_ascii_digit)) {
    refuse("Content-Length is not a number of bytes");
  }
  head.chunked = request.count(beast::http::field::transfer_encoding) > 0;
  if (head.chunked && !equal_ignoring_case(head.header("Transfer-Encoding"), "chunked")) {
    refuse("the only Transfer-Encoding that this server takes is chunked");
  }
  head.wants_continue = equal_ignoring_case(head.header("Expect"), "100-continue");
  head.wants_close =
      head.is_http_1_0 || beast::http::token_list(head.list("Connection")).exists("close");
}

}  // namespace

std::string_view RequestHead::header(std::string_view name) const {
  const auto at = std::ranges::find_if(
      headers, [&](const auto& header) { return equal_ignoring_case(header.first, name); });
  return at == headers.end() ? std::string_view() : std::string_view(at->second);
}

std::string RequestHead::list(std::string_view name) const {
  std::string values;
  for (const auto& [known, value] : headers) {
    if (equal_ignoring_case(known, name)) values += (values.empty() ? "" : ", ") + value;
  }
  return values;
}

std::optional<RequestHead> parse_request_head(std::string_view bytes) {
  // Empty lines before a request mean nothing (RFC 9112, section 2.2).
  size_t begin = 0;
  while (bytes.substr(begin).starts_with(kLineEnd)) begin += kLineEnd.size();
  const size_t end = bytes.find(kHeadEnd, begin);
  const bool whole = end != std::string_view::npos;
  const std::string_view all = bytes.substr(0, whole ? end + kHeadEnd.size() : bytes.size());
  const std::string_view text = all.substr(begin);
  check_characters(text);
  check_sizes(text, all.size(), whole);
  if (!whole) return std::nullopt;
  check_lines(text);

  Parser parser;
  parser.header_limit(kHeadBytesMax);
  parser.skip(true);  // the body, which BodyReader reads
  beast::error_code error;
  parser.put(boost::asio::buffer(text), error);
  if (error) refuse_syntax(error, text);
  RequestHead head;
  head.byte_count = all.size();
  read_request_line(parser.get(), head);
  if (const auto length = parser.content_length()) head.content_length = *length;
  read_header(parser.get(), head);
  return head;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

std::vector<std::string_view> list_items(std::string_view list) {
  std::vector<std::string_view> items;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    items.push_back(trimmed(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return items;
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parameters;
  for (size_t begin = 0; begin < query.size();) {
    const size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view item = query.substr(begin, end - begin);
    const size_t equals = std::min(item.find('='), item.size());
    if (!item.empty()) {
      parameters.emplace_back(
          undo_percent_encoding(item.substr(0, equals)),
          undo_percent_encoding(item.substr(std::min(equals + 1, item.size()))));
    }
    begin = end + 1;
  }
  return parameters;
}

namespace {

// The limit of a chunk's size line or a trailer; chunk extensions mean nothing here.
constexpr size_t kLineBytesMax = 4096;
// The limit of all of them together, in addition to as many bytes as the body may have: chunks may
// be of a few bytes each.
constexpr uint64_t kFramingBytesMax = 65'536;

[[noreturn]] void refuse_chunks() { throw Error(400, "the chunks of the body are malformed"); }

[[noreturn]] void refuse_size(uint64_t bytes_max) {
  throw Error(413, "the body has more than " + std::to_string(bytes_max) + " bytes");
}

}  // namespace

BodyReader::BodyReader(const RequestHead& head, uint64_t bytes_max)
    : bytes_max_(bytes_max),
      state_(head.chunked ? State::kSizeLine : State::kLength),
      left_(head.chunked ? 0 : head.content_length.value_or(0)) {
  if (head.chunked) return;
  if (left_ > bytes_max) refuse_size(bytes_max);
  // Pages become memory when bytes are written to them.
  capacity_ = left_;
  bytes_ = std::make_unique_for_overwrite<char[]>(capacity_);
  if (left_ == 0) state_ = State::kWhole;
}

std::span<char> BodyReader::room() {
  if (state_ != State::kLength) return {};
  return {bytes_.get() + size_, left_};
}

void BodyReader::fill(size_t count) {
  size_ += count;
  left_ -= count;
  if (left_ == 0) state_ = State::kWhole;
}

size_t BodyReader::take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && state_ != State::kWhole) {
    const std::string_view rest = bytes.substr(taken);
    if (state_ == State::kLength || state_ == State::kData) {
      const size_t count = std::min<uint64_t>(rest.size(), left_);
      if (state_ == State::kLength) {
        std::memcpy(bytes_.get() + size_, rest.data(), count);
        fill(count);
      } else {
        append(rest.substr(0, count));
        left_ -= count;
        if (left_ == 0) state_ = State::kDataEnd;
      }
      taken += count;
    } else {
      taken += take_line(rest);
    }
  }
  return taken;
}

// Takes a line of the framing: to its end, or to that of `bytes`.
size_t BodyReader::take_line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t count = std::min(end, bytes.size() - 1) + 1;
  framing_ += count;
  line_.append(bytes.substr(0, count));
  if (framing_ > bytes_max_ + kFramingBytesMax) refuse_size(bytes_max_);
  if (line_.size() > kLineBytesMax) refuse_chunks();
  if (end == std::string_view::npos) return count;
  if (!line_.ends_with("\r\n")) refuse_chunks();
  line_.resize(line_.size() - 2);
  end_line();
  line_.clear();
  return count;
}

void BodyReader::end_line() {
  switch (state_) {
    case State::kDataEnd:
      if (!line_.empty()) refuse_chunks();
      state_ = State::kSizeLine;
      return;
    case State::kTrailer:
      if (line_.empty()) state_ = State::kWhole;
      return;
    default:
      break;
  }
  const char* end = line_.data() + line_.size();
  const auto [rest, error] = std::from_chars(line_.data(), end, left_, 16);
  // After the size: nothing, or an extension.
  if (error == std::errc::result_out_of_range) refuse_size(bytes_max_);
  if (error != std::errc() || (rest != end && *rest != ';' && *rest != ' ')) refuse_chunks();
  if (left_ > bytes_max_ - size_) refuse_size(bytes_max_);
  state_ = left_ == 0 ? State::kTrailer : State::kData;
}

void BodyReader::append(std::string_view bytes) {
  const size_t needed = size_ + bytes.size();
  if (needed > capacity_) {
    capacity_ = std::max<size_t>(needed, std::min<uint64_t>(2 * capacity_, bytes_max_));
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_);
    if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
  }
  std::memcpy(bytes_.get() + size_, bytes.data(), bytes.size());
  size_ = needed;
}

}  // namespace blindfuse::http
