// The encodings of a key or a value in text: as it is (UTF-8), as hex, or as base64.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "host/ingest/key_value_source.h"

namespace blindfuse {

// The limit of a decoded field. It only bounds the memory that one value takes. The caller decides
// which values a database takes, and may also truncate them.
inline constexpr size_t kMaxKeyBytes = 65'536;
inline constexpr size_t kMaxValueBytes = size_t{16} << 20;

// Decodes one field of every pair. utf8 is strict (see utf8.h), and empty text is valid. hex is RFC
// 4648 section 8 in either case. base64 is RFC 4648 section 4, with padding.
class FieldDecoder {
 public:
  // `noun` is what errors call the field: "key" or "value".
  FieldDecoder(std::string_view noun, TextEncoding encoding, size_t max_bytes);

  // The bytes that `text` stands for: a view of `text` or of this decoder, valid until the next
  // call. Throws InputError, which names `place` and the 1-based byte of `text`, if the text is not
  // valid or stands for too many bytes. Nothing larger than the limit is allocated.
  std::string_view decode(std::string_view text, const InputPlace& place);

  // Returns `bytes` themselves, without decoding, if they are not too many.
  std::string_view accept(std::string_view bytes, const InputPlace& place) const;

 private:
  void check_size(size_t bytes, const InputPlace& place) const;
  void check_utf8(std::string_view text, const InputPlace& place) const;
  [[noreturn]] void fail_hex(std::string_view text, const InputPlace& place) const;
  [[noreturn]] void fail_base64(std::string_view text, const InputPlace& place) const;

  std::string noun_;
  TextEncoding encoding_;
  size_t max_bytes_;
  std::string decoded_;
};

FieldDecoder key_decoder(TextEncoding encoding);
FieldDecoder value_decoder(TextEncoding encoding);

}  // namespace blindfuse
