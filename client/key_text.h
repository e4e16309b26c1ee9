// Keys and values as text, as people type them and as JSON can hold them, and lines of keys.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse {

enum class KeyEncoding { kUtf8, kHex, kBase64 };

// The encodings by the names that --key-encoding takes.
const std::map<std::string, KeyEncoding>& key_encodings();

// The bytes that a key's text encodes. Throws InputError if the text is not valid.
std::string decode_key(std::string_view text, KeyEncoding encoding);

// Reads the lines of a stream, some at a time: those that have arrived, so that a person gets an
// answer after every line, or as many as are wanted.
class LineInput {
 public:
  // Reads from an open file descriptor, which it does not close. Throws InputError for a line
  // longer than line_bytes_max.
  LineInput(int fd, size_t line_bytes_max) : fd_(fd), line_bytes_max_(line_bytes_max) {}

  // Waits for `count` lines or the end of the input, and takes them without their ends ("\n" or
  // "\r\n"). Nothing at the end of the input. A last line needs no end. Skips blank lines, and a
  // UTF-8 byte order mark at the beginning of the input.
  std::vector<std::string> next(size_t count) { return take(count, true); }
  // Waits for one line, and takes up to `count` lines that have arrived by then.
  std::vector<std::string> next_arrived(size_t count) { return take(count, false); }

 private:
  std::vector<std::string> take(size_t count, bool waits_for_all);
  bool skip_byte_order_mark();
  bool take_line(std::vector<std::string>& lines);
  bool has_arrived() const;
  void read_more();

  const int fd_;
  const size_t line_bytes_max_;
  std::string buffer_;
  size_t taken_ = 0;  // bytes of buffer_ that were given out
  bool is_begun_ = false;
  bool ended_ = false;
};

}  // namespace blindfuse
