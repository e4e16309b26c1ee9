#include "src/bit_packing.h"

#include <algorithm>
#include <cstring>

#include "src/errors.h"
#include "src/little_endian.h"

namespace blindfuse {

void pack_rounded(std::span<const uint32_t> words, uint32_t bits, std::span<uint8_t> out) {
  invariant(out.size() == packed_bytes(words.size(), bits), "room for exactly the packed words");
  if (bits == 32) {
    if (!words.empty()) std::memcpy(out.data(), words.data(), out.size());
    return;
  }
  uint64_t pending = 0;
  uint32_t pending_bits = 0;
  uint8_t* at = out.data();
  for (uint32_t word : words) {
    pending |= uint64_t{round_word(word, bits)} << pending_bits;
    pending_bits += bits;
    if (pending_bits >= 32) {
      store_le(at, static_cast<uint32_t>(pending));
      at += 4;
      pending >>= 32;
      pending_bits -= 32;
    }
  }
  for (; pending_bits > 0; pending_bits -= std::min(pending_bits, 8u)) {
    *at++ = static_cast<uint8_t>(pending);
    pending >>= 8;
  }
}

void unpack_restored(std::span<const uint8_t> packed, uint32_t bits, uint64_t first,
                     std::span<uint32_t> words) {
  invariant(packed_bytes(first + words.size(), bits) <= packed.size(),
            "the words lie in the packed sequence");
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t bit = first * bits;
  for (uint32_t& word : words) {
    const uint64_t byte = bit / 8;
    uint64_t window = 0;
    if (byte + 8 <= packed.size()) {
      window = load_le<uint64_t>(packed.data() + byte);
    } else {
      std::memcpy(&window, packed.data() + byte, packed.size() - byte);
    }
    word = restore_word(static_cast<uint32_t>((window >> (bit % 8)) & mask), bits);
    bit += bits;
  }
}

bool is_packed(std::span<const uint8_t> packed, uint64_t count, uint32_t bits) {
  if (packed.size() != packed_bytes(count, bits)) return false;
  const uint32_t used = static_cast<uint32_t>(count * bits % 8);
  return used == 0 || (packed.back() >> used) == 0;
}

}  // namespace blindfuse
