#include "client/decoder.h"

#include <blindfuse/errors.h>

#include "client/secret_product.h"
#include "src/bit_packing.h"
#include "src/errors.h"

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
  const SecretFactor secret_factor(s.span());
  std::vector<uint32_t> column(n);
  std::vector<uint8_t> record(record_bytes);
  for (uint32_t c = 0; c < record_bytes; ++c) {
    unpack_restored(hint, layout.hint_bits, uint64_t{c} * n, column);
    const uint32_t phase = words[c] - secret_product(secret_factor, column);
    const uint32_t half = 1u << (kPlaintextShift - 1);
    record[c] = static_cast<uint8_t>((phase + half) >> kPlaintextShift);
  }
  return record;
}

}  // namespace blindfuse
