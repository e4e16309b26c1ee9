// Reads the lines of a stream, as many at a time as have arrived. So a person gets an answer after
// every line, and a file is read in batches.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace blindfuse {

class LineInput {
 public:
  // Reads from an open file descriptor, which it does not close. Throws InputError for a line
  // longer than line_bytes_max.
  LineInput(int fd, size_t line_bytes_max) : fd_(fd), line_bytes_max_(line_bytes_max) {}

  // Waits for one line, and takes up to `count` lines that have arrived by then, without their ends
  // ("\n" or "\r\n"). Nothing at the end of the input. A last line needs no end.
  std::vector<std::string> next(size_t count);

 private:
  bool take_line(std::vector<std::string>& lines);
  bool has_arrived() const;
  void read_more();

  const int fd_;
  const size_t line_bytes_max_;
  std::string buffer_;
  size_t taken_ = 0;  // bytes of buffer_ that were given out
  bool ended_ = false;
};

}  // namespace blindfuse
