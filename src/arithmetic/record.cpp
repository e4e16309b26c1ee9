#include "src/arithmetic/record.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

uint32_t length_bytes_for(uint32_t longest) {
  if (longest <= 0xff) return 1;
  return longest <= 0xffff ? 2 : 4;
}

}  // namespace

RecordFormat record_format_for(uint32_t digest_bytes, uint32_t shortest, uint32_t longest) {
  return {digest_bytes, shortest == longest ? 0 : length_bytes_for(longest), longest};
}

void encode_record(const RecordFormat& format, std::span<const uint8_t> digest,
                   std::string_view value, uint32_t first, std::span<uint8_t> piece) {
  invariant(first + piece.size() <= format.record_bytes(), "the piece lies in the record");
  invariant(digest.size() >= format.digest_bytes, "the digest is long enough");
  invariant(value.size() <= format.value_bytes, "the value fits the record");
  invariant(format.length_bytes != 0 || value.size() == format.value_bytes,
            "a value without a length field fills the record");
  std::array<uint8_t, kDigestBytesMax + 4> header{};
  auto end = std::copy_n(digest.begin(), format.digest_bytes, header.begin());
  for (uint32_t i = 0; i < format.length_bytes; ++i) {
    *end++ = static_cast<uint8_t>(value.size() >> (8 * i));
  }
  const auto header_bytes = static_cast<uint32_t>(end - header.begin());
  // Header, value and padding, each as far as the piece has it.
  size_t done = 0;
  const auto put = [&](std::span<const uint8_t> part, size_t begin) {
    const size_t at = first + done;
    if (at >= begin + part.size() || done == piece.size()) return;
    const size_t count = std::min(begin + part.size() - at, piece.size() - done);
    std::memcpy(piece.data() + done, part.data() + (at - begin), count);
    done += count;
  };
  put(std::span(header).first(header_bytes), 0);
  put({reinterpret_cast<const uint8_t*>(value.data()), value.size()}, header_bytes);
  std::fill(piece.begin() + static_cast<ptrdiff_t>(done), piece.end(), uint8_t{0});
}

std::optional<std::string> decode_record(const RecordFormat& format,
                                         std::span<const uint8_t> digest,
                                         std::span<const uint8_t> record) {
  invariant(record.size() == format.record_bytes(), "a record has record_bytes bytes");
  invariant(digest.size() >= format.digest_bytes, "the digest is long enough");
  uint32_t differences = 0;
  for (uint32_t i = 0; i < format.digest_bytes; ++i) differences |= record[i] ^ digest[i];
  const auto length_field = record.subspan(format.digest_bytes, format.length_bytes);
  const auto body = record.subspan(format.digest_bytes + format.length_bytes);
  uint32_t length = format.length_bytes == 0 ? format.value_bytes : 0;
  for (uint32_t i = 0; i < format.length_bytes; ++i) {
    length |= uint32_t{length_field[i]} << (8 * i);
  }
  differences |= static_cast<uint32_t>(length > format.value_bytes);
  for (uint32_t i = 0; i < format.value_bytes; ++i) differences |= i < length ? 0u : body[i];
  std::string value(reinterpret_cast<const char*>(body.data()),
                    std::min(length, format.value_bytes));
  if (differences != 0) return std::nullopt;
  return value;
}

}  // namespace blindfuse
