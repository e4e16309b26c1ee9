// A text, line by line, without copying: blocks are read into one buffer and lines are views of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "host/ingest/byte_source.h"

namespace blindfuse {

struct Line {
  std::string_view text;        // without its terminator
  std::string_view terminator;  // "\n" or "\r\n"; empty for a last line that lacks one
  uint64_t number = 0;          // 1-based
};

// Lines end in \n or \r\n. A \r elsewhere is text. The last line may lack its end, and there is no
// line after the last end. A UTF-8 byte order mark at the beginning of the text is skipped. Memory:
// the buffer, which grows to at most twice the longest line allowed.
class LineReader {
 public:
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  static constexpr size_t kMaxLineBytes = size_t{64} << 20;

  // `buffer_bytes` is at least 1. Tests make both sizes small.
  explicit LineReader(std::unique_ptr<ByteSource> bytes, size_t buffer_bytes = kBufferBytes,
                      size_t max_line_bytes = kMaxLineBytes);

  // Reads the next line. Returns false at the end. The views stay valid until the next call. Throws
  // InputError for a line longer than the limit, if the text is compressed or in UTF-16, and if
  // reading fails.
  bool next(Line& line);

  const std::string& name() const { return bytes_->name(); }
  size_t max_line_bytes() const { return max_line_bytes_; }
  uint64_t bytes_read() const { return bytes_read_; }
  std::optional<uint64_t> bytes_total() const { return bytes_->bytes_total(); }

 private:
  // The bytes that were read and not yet returned.
  std::string_view pending() const { return {buffer_.get() + begin_, end_ - begin_}; }

  // Reads at least one more byte after the pending ones. Returns false at the end of the text.
  bool fill();
  void make_room();
  void check_compression();
  void refuse_utf16();
  void skip_byte_order_mark();

  std::unique_ptr<ByteSource> bytes_;
  size_t max_line_bytes_;
  size_t capacity_;
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  uint64_t bytes_read_ = 0;
  uint64_t lines_read_ = 0;
};

}  // namespace blindfuse
