#include "client/key_text.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/base/utf8.h"

namespace blindfuse {

const std::map<std::string, KeyEncoding>& key_encodings() {
  static const std::map<std::string, KeyEncoding> names = {
      {"utf8", KeyEncoding::kUtf8}, {"hex", KeyEncoding::kHex}, {"base64", KeyEncoding::kBase64}};
  return names;
}

std::string decode_key(std::string_view text, KeyEncoding encoding) {
  if (encoding == KeyEncoding::kUtf8) {
    if (is_utf8(text)) return std::string(text);
    throw InputError("a key is not UTF-8; give its bytes with --key-encoding hex");
  }
  const bool hex = encoding == KeyEncoding::kHex;
  std::optional<std::string> bytes = hex ? decode_hex(text) : decode_base64(text);
  if (bytes) return std::move(*bytes);
  throw InputError("the key '" + std::string(is_utf8(text) ? text : "...") + "' is not " +
                   (hex ? "hex: pairs of the digits 0 to 9 and a to f"
                        : "base64: four characters for every three bytes, with padding"));
}

std::vector<std::string> LineInput::take(size_t count, bool waits_for_all) {
  std::vector<std::string> lines;
  while (lines.size() < count) {
    if (skip_byte_order_mark() && take_line(lines)) continue;
    if (ended_ || (!waits_for_all && !lines.empty() && !has_arrived())) break;
    read_more();
  }
  return lines;
}

// False while more bytes are needed to tell.
bool LineInput::skip_byte_order_mark() {
  if (is_begun_) return true;
  if (!ended_ && buffer_.size() < kByteOrderMark.size() && kByteOrderMark.starts_with(buffer_)) {
    return false;
  }
  if (buffer_.starts_with(kByteOrderMark)) taken_ = kByteOrderMark.size();
  return is_begun_ = true;
}

bool LineInput::take_line(std::vector<std::string>& lines) {
  size_t end = buffer_.find('\n', taken_);
  const bool unfinished = end == std::string::npos;
  if (unfinished && (!ended_ || taken_ == buffer_.size())) {
    if (buffer_.size() - taken_ <= line_bytes_max_ + 1) return false;
  }
  if (unfinished) end = buffer_.size();
  std::string line = buffer_.substr(taken_, end - taken_);
  if (line.ends_with('\r')) line.pop_back();
  if (line.size() > line_bytes_max_) {
    throw InputError("a line of the input is longer than " + std::to_string(line_bytes_max_) +
                     " bytes");
  }
  taken_ = unfinished ? end : end + 1;
  if (!line.empty()) lines.push_back(std::move(line));
  return true;
}

bool LineInput::has_arrived() const {
  pollfd waiting{fd_, POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

void LineInput::read_more() {
  buffer_.erase(0, taken_);
  taken_ = 0;
  std::array<char, 65'536> piece;
  const ssize_t got = read(fd_, piece.data(), piece.size());
  if (got < 0 && errno == EINTR) return;
  if (got < 0) throw InputError(std::string("cannot read the keys: ") + std::strerror(errno));
  ended_ = got == 0;
  buffer_.append(piece.data(), static_cast<size_t>(got));
}

}  // namespace blindfuse
