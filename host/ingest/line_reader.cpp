#include "host/ingest/line_reader.h"

#include <cstring>
#include <span>
#include <utility>

#include "host/ingest/byte_source.h"
#include "host/ingest/key_value_source.h"
#include "src/base/errors.h"
#include "src/base/utf8.h"

namespace blindfuse {

LineReader::LineReader(std::unique_ptr<ByteSource> bytes, size_t buffer_bytes,
                       size_t max_line_bytes)
    : bytes_(std::move(bytes)),
      max_line_bytes_(max_line_bytes),
      capacity_(buffer_bytes),
      buffer_(std::make_unique_for_overwrite<char[]>(buffer_bytes)) {
  invariant(buffer_bytes > 0, "a line reader has a buffer");
}

bool LineReader::next(Line& line) {
  if (lines_read_ == 0) {
    check_compression();
    refuse_utf16();
    skip_byte_order_mark();
  }
  line.number = ++lines_read_;

  size_t newline = pending().find('\n');
  while (newline == std::string_view::npos) {
    const size_t searched = pending().size();
    // One more byte is allowed: the last one may turn out to be the \r of a terminator.
    if (searched > max_line_bytes_ + 1 || !fill()) break;
    newline = pending().find('\n', searched);
  }

  const bool terminated = newline != std::string_view::npos;
  line.text = pending().substr(0, newline);
  line.terminator = terminated ? pending().substr(newline, 1) : std::string_view();
  if (terminated && line.text.ends_with('\r')) {
    line.text.remove_suffix(1);
    line.terminator = pending().substr(newline - 1, 2);
  }
  if (line.text.size() > max_line_bytes_) {
    fail_input(
        InputPlace{name(), "line", line.number},
        "longer than the limit; expected at most " + std::to_string(max_line_bytes_) + " bytes");
  }
  begin_ += line.text.size() + line.terminator.size();
  return terminated || !line.text.empty();
}

bool LineReader::fill() {
  if (at_end_) return false;
  if (end_ == capacity_) make_room();
  const size_t got = bytes_->read(std::span(buffer_.get() + end_, capacity_ - end_));
  end_ += got;
  bytes_read_ += got;
  at_end_ = got == 0;
  return !at_end_;
}

void LineReader::make_room() {
  const size_t kept = end_ - begin_;
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, kept);
  } else {
    capacity_ *= 2;
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_);
    std::memcpy(larger.get(), buffer_.get(), kept);
    buffer_ = std::move(larger);
  }
  begin_ = 0;
  end_ = kept;
}

void LineReader::check_compression() {
  while (may_be_compressed(pending()) && fill()) {
  }
  refuse_compressed(name(), pending());
}

// Recognizes UTF-16 by its mark, or by the zero bytes of its first characters, which as UTF-8 would
// be part of keys.
void LineReader::refuse_utf16() {
  constexpr size_t kBytes = 16;
  while (pending().size() < kBytes && fill()) {
  }
  const std::string_view start = pending().substr(0, kBytes);
  const auto has_zeros = [&](size_t parity) {
    bool is_so = start.size() >= kBytes / 2;
    for (size_t i = 0; i < start.size(); ++i) is_so = is_so && (start[i] == 0) == (i % 2 == parity);
    return is_so;
  };
  const bool is_big = start.starts_with("\xFE\xFF") || has_zeros(0);
  if (!is_big && !start.starts_with("\xFF\xFE") && !has_zeros(1)) return;
  fail_input(name(), "this is UTF-16; convert it: iconv -f UTF-16" +
                         std::string(is_big ? "BE" : "LE") +
                         " -t UTF-8 FILE | blindfuse build - --format tsv|csv|ndjson ...");
}

void LineReader::skip_byte_order_mark() {
  while (pending().size() < kByteOrderMark.size() && fill()) {
  }
  if (pending().starts_with(kByteOrderMark)) begin_ += kByteOrderMark.size();
}

}  // namespace blindfuse
