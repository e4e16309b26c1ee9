#include "host/server/http/body_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "host/server/http/response.h"

namespace blindfuse::http {
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
