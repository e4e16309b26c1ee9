// A record, the content of one slot of the filter: digest || length || value || zeros
// (docs/PROTOCOL.md, section 5).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace blindfuse {

inline constexpr uint32_t kDigestBytesMax = 16;
inline constexpr uint32_t kValueBytesMax = 131'072;

struct RecordFormat {
  uint32_t digest_bytes = 8;  // 1..16; 0 in an index database
  uint32_t length_bytes = 0;  // 0 when all values have value_bytes bytes, else 1, 2 or 4
  uint32_t value_bytes = 0;   // the longest value, 0..131,072

  // W, the bytes of every record.
  uint32_t record_bytes() const { return digest_bytes + length_bytes + value_bytes; }

  bool operator==(const RecordFormat&) const = default;
};

// The format for values of shortest..longest bytes.
RecordFormat record_format_for(uint32_t digest_bytes, uint32_t shortest, uint32_t longest);

// Writes the bytes first .. first + piece.size() - 1 of a record, since a matrix is filled one
// block of columns at a time. digest has at least digest_bytes bytes. The value must fit the
// format, and have exactly value_bytes bytes if the format has no length field.
void encode_record(const RecordFormat& format, std::span<const uint8_t> digest,
                   std::string_view value, uint32_t first, std::span<uint8_t> piece);

// The value, or nothing if the record does not belong to this digest. Digest, length and padding
// must all be right. All of them are read in either case, so that the time does not tell whether a
// key is there.
std::optional<std::string> decode_record(const RecordFormat& format,
                                         std::span<const uint8_t> digest,
                                         std::span<const uint8_t> record);

}  // namespace blindfuse
