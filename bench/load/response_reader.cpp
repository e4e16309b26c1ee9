#include "bench/load/response_reader.h"

#include <blindfuse/errors.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace blindfuse::load {
namespace {

constexpr size_t kHeadBytesMax = 65'536;

[[noreturn]] void fail(const char* what) {
  throw ProtocolViolation(std::string("the server's answer is no HTTP/1.1: ") + what);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

std::optional<uint64_t> number_in(std::string_view text, int base = 10) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number, base);
  if (error != std::errc() || end != text.end()) return std::nullopt;
  return number;
}

}  // namespace

void ResponseReader::begin(bool keep_body) {
  *this = ResponseReader();
  state_ = State::kStatusLine;
  keep_body_ = keep_body;
}

size_t ResponseReader::feed(std::string_view bytes) {
  size_t fed = 0;
  while (fed < bytes.size() && state_ != State::kComplete) {
    const std::string_view rest = bytes.substr(fed);
    const bool in_body =
        state_ == State::kBody || state_ == State::kBodyUntilClose || state_ == State::kChunk;
    fed += in_body ? feed_body(rest) : feed_line(rest);
  }
  return fed;
}

bool ResponseReader::finish() {
  if (state_ == State::kBodyUntilClose) state_ = State::kComplete;
  return is_complete();
}

size_t ResponseReader::feed_line(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const size_t taken = end == std::string_view::npos ? bytes.size() : end + 1;
  head_bytes_ += taken;
  if (head_bytes_ > kHeadBytesMax) fail("its head is longer than 64 KiB");
  line_ += bytes.substr(0, taken);
  if (end == std::string_view::npos) return taken;
  std::string_view line = line_;
  line.remove_suffix(line.ends_with("\r\n") ? 2 : 1);
  read_line(line);
  line_.clear();
  return taken;
}

size_t ResponseReader::feed_body(std::string_view bytes) {
  const size_t taken = std::min<uint64_t>(bytes.size(), left_);
  if (keep_body_) body_ += bytes.substr(0, taken);
  if (state_ == State::kBodyUntilClose) return taken;
  left_ -= taken;
  if (left_ == 0) state_ = state_ == State::kChunk ? State::kChunkEnd : State::kComplete;
  return taken;
}

void ResponseReader::read_line(std::string_view line) {
  switch (state_) {
    case State::kStatusLine:
      return read_status(line);
    case State::kHeader:
      return line.empty() ? end_head() : read_header(line);
    case State::kChunkLength:
      return read_chunk_length(line);
    case State::kChunkEnd:
      if (!line.empty()) fail("a chunk is longer than its length");
      head_bytes_ = 1;  // the lines of many chunks are no long head
      state_ = State::kChunkLength;
      return;
    default:  // kTrailer
      if (line.empty()) state_ = State::kComplete;
  }
}

void ResponseReader::read_status(std::string_view line) {
  const bool is_http = line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ");
  const auto status = is_http ? number_in(line.substr(9, 3)) : std::nullopt;
  if (!status || *status < 100) fail("its first line is no status line");
  status_ = static_cast<int>(*status);
  closes_ = line.starts_with("HTTP/1.0");
  state_ = State::kHeader;
}

void ResponseReader::read_header(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) fail("a header line has no colon");
  const std::string name = lower(line.substr(0, colon));
  const std::string value = lower(trimmed(line.substr(colon + 1)));
  if (name == "content-length") {
    length_ = number_in(value);
    if (!length_) fail("its Content-Length is no number");
  } else if (name == "transfer-encoding") {
    if (value != "chunked") fail("its transfer encoding is not chunked");
    chunked_ = true;
  } else if (name == "connection") {
    closes_ = value == "close" || (closes_ && value != "keep-alive");
  } else if (name == "retry-after") {
    retry_after_s_ = number_in(value);
  }
}

void ResponseReader::end_head() {
  if (status_ < 200) {  // the real one follows
    begin(keep_body_);
    head_bytes_ = 1;
  } else if (status_ == 204 || status_ == 304) {
    state_ = State::kComplete;
  } else if (chunked_) {
    state_ = State::kChunkLength;
  } else if (length_) {
    left_ = *length_;
    state_ = left_ == 0 ? State::kComplete : State::kBody;
  } else {
    left_ = std::numeric_limits<uint64_t>::max();
    closes_ = true;
    state_ = State::kBodyUntilClose;
  }
}

void ResponseReader::read_chunk_length(std::string_view line) {
  const auto length = number_in(trimmed(line.substr(0, line.find(';'))), 16);
  if (!length) fail("the length of a chunk is no number");
  left_ = *length;
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
}

}  // namespace blindfuse::load
