#include "client/decoder.h"

#include "client/errors.h"
#include "src/bit_packing.h"

namespace blindfuse {

SecretBuffer<uint32_t> words_of_shard(const Layout& layout, uint32_t shard,
                                      std::span<const uint8_t> response) {
  invariant(shard < layout.shard_count, "the shard exists");
  if (!is_packed(response, layout.column_count(), layout.response_bits)) {
    throw ProtocolViolation("the server's response is not " +
                            std::to_string(layout.response_bytes()) + " bytes of packed words");
  }
  SecretBuffer<uint32_t> words(layout.record_bytes());
  unpack_restored(response, layout.response_bits, uint64_t{shard} * words.size(), words.span());
  return words;
}

namespace {

// The product of a secret with columns of the hint. s x is (x xor flip) and keep, plus one where
// s = -1: the same work for every secret, and no multiplication.
class SecretSum {
 public:
  explicit SecretSum(std::span<const uint32_t> s) : flip_(s.size()), keep_(s.size()) {
    for (size_t k = 0; k < s.size(); ++k) {
      const uint32_t negative = s[k] >> 31;
      flip_[k] = 0u - negative;
      keep_[k] = 0u - (s[k] & 1);
      minus_ones_ += negative;
    }
  }

  uint32_t operator()(std::span<const uint32_t> column) const {
    const uint32_t* flip = flip_.span().data();
    const uint32_t* keep = keep_.span().data();
    uint32_t sum = minus_ones_;
    for (size_t k = 0; k < column.size(); ++k) sum += (column[k] ^ flip[k]) & keep[k];
    return sum;
  }

 private:
  SecretBuffer<uint32_t> flip_, keep_;
  uint32_t minus_ones_ = 0;
};

}  // namespace

std::vector<uint8_t> decode(DecodingSecret secret, const Layout& layout,
                            std::span<const uint32_t> words, std::span<const uint8_t> hint) {
  const SecretBuffer<uint32_t> s = std::move(secret).take();
  const uint32_t n = layout.lwe->dimension;
  const uint32_t record_bytes = layout.record_bytes();
  invariant(s.size() == n, "the secret has the database's dimension");
  invariant(words.size() == record_bytes, "there is a word for every byte of the record");
  if (!is_packed(hint, uint64_t{record_bytes} * n, layout.hint_bits)) {
    throw AlteredCache("the hint of a shard is not " + std::to_string(layout.shard_hint_bytes()) +
                       " bytes of packed words");
  }
  const SecretSum product(s.span());
  std::vector<uint32_t> column(n);
  std::vector<uint8_t> record(record_bytes);
  for (uint32_t c = 0; c < record_bytes; ++c) {
    unpack_restored(hint, layout.hint_bits, uint64_t{c} * n, column);
    const uint32_t phase = words[c] - product(column);
    const uint32_t half = 1u << (kPlaintextShift - 1);
    record[c] = static_cast<uint8_t>((phase + half) >> kPlaintextShift);
  }
  return record;
}

}  // namespace blindfuse
