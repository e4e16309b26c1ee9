#include "src/arithmetic/bit_packing.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Eight words of b bits are b bytes, with every word at a place that is known at compile time.
constexpr size_t kEight = 8;

template <uint32_t kBits, size_t... kIndex>
void pack_eight(const uint32_t* words, uint8_t* out, std::index_sequence<kIndex...>) {
  uint64_t pending = 0;
  // Appends a word; writes four bytes whenever they are full.
  const auto append = [&]<size_t kWord>() {
    constexpr uint32_t kBegin = kWord * kBits % 32;
    pending |= uint64_t{round_word(words[kWord], kBits)} << kBegin;
    if constexpr (kBegin + kBits >= 32) {
      store_le(out + kWord * kBits / 32 * 4, static_cast<uint32_t>(pending));
      pending >>= 32;
    }
  };
  (append.template operator()<kIndex>(), ...);
  // What is left when 8 b bits are no multiple of 32.
  constexpr uint32_t kWritten = kEight * kBits / 32 * 4;
  for (uint32_t byte = kWritten; byte < kBits; ++byte) {
    out[byte] = static_cast<uint8_t>(pending >> (8 * (byte - kWritten)));
  }
}

template <uint32_t kBits>
void pack_eights(const uint32_t* words, size_t eights, uint8_t* out) {
  for (size_t i = 0; i < eights; ++i) {
    pack_eight<kBits>(words + i * kEight, out + i * kBits, std::make_index_sequence<kEight>());
  }
}

// Reads up to 7 bytes behind the last of the words.
template <uint32_t kBits>
void unpack_eights(const uint8_t* packed, size_t eights, uint32_t* words) {
  for (size_t i = 0; i < eights; ++i) {
#pragma GCC unroll 8
    for (size_t j = 0; j < kEight; ++j) {
      const auto window = load_le<uint64_t>(packed + i * kBits + j * kBits / 8);
      words[i * kEight + j] = restore_word(static_cast<uint32_t>(window >> (j * kBits % 8)), kBits);
    }
  }
}

using PackEights = void (*)(const uint32_t*, size_t, uint8_t*);
using UnpackEights = void (*)(const uint8_t*, size_t, uint32_t*);

// The function for `bits` is at bits - 1.
constexpr auto kPackEights = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<PackEights, 32>{pack_eights<kIndex + 1>...};
}
(std::make_index_sequence<32>());
constexpr auto kUnpackEights = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<UnpackEights, 32>{unpack_eights<kIndex + 1>...};
}
(std::make_index_sequence<32>());

// Word `index` of a packed sequence, near whose end eight bytes are not there to be read.
uint32_t unpack_one(std::span<const uint8_t> packed, uint32_t bits, uint64_t index) {
  const uint64_t bit = index * bits;
  const auto rest = packed.subspan(bit / 8);
  std::array<uint8_t, 8> window{};
  std::copy_n(rest.begin(), std::min(rest.size(), window.size()), window.begin());
  return restore_word(static_cast<uint32_t>(load_le<uint64_t>(window.data()) >> (bit % 8)), bits);
}

}  // namespace

void pack_rounded(std::span<const uint32_t> words, uint32_t bits, std::span<uint8_t> out) {
  invariant(bits >= 1 && bits <= 32, "words have 1 to 32 bits");
  invariant(out.size() == packed_bytes(words.size(), bits), "room for exactly the packed words");
  const size_t eights = words.size() / kEight;
  const PackEights pack = kPackEights[bits - 1];
  pack(words.data(), eights, out.data());
  const size_t left = words.size() % kEight;
  if (left == 0) return;
  std::array<uint32_t, kEight> last{};
  std::array<uint8_t, 4 * kEight> packed;
  std::copy_n(words.begin() + static_cast<ptrdiff_t>(eights * kEight), left, last.begin());
  pack(last.data(), 1, packed.data());
  std::copy_n(packed.begin(), out.size() - eights * bits,
              out.begin() + static_cast<ptrdiff_t>(eights * bits));
}

void unpack_restored(std::span<const uint8_t> packed, uint32_t bits, uint64_t first,
                     std::span<uint32_t> words) {
  invariant(bits >= 1 && bits <= 32, "words have 1 to 32 bits");
  invariant(packed_bytes(first + words.size(), bits) <= packed.size(),
            "the words lie in the packed sequence");
  size_t done = 0;
  // Up to the first that begins with a byte and is one of eight.
  for (; done < words.size() && (first + done) % kEight != 0; ++done) {
    words[done] = unpack_one(packed, bits, first + done);
  }
  const uint64_t byte = (first + done) * bits / 8;
  if (packed.size() >= byte + kEight) {
    const size_t eights =
        std::min<uint64_t>((words.size() - done) / kEight, (packed.size() - byte - kEight) / bits);
    kUnpackEights[bits - 1](packed.data() + byte, eights, words.data() + done);
    done += eights * kEight;
  }
  for (; done < words.size(); ++done) words[done] = unpack_one(packed, bits, first + done);
}

bool is_packed(std::span<const uint8_t> packed, uint64_t count, uint32_t bits) {
  if (packed.size() != packed_bytes(count, bits)) return false;
  const uint32_t used = static_cast<uint32_t>(count * bits % 8);
  return used == 0 || (packed.back() >> used) == 0;
}

}  // namespace blindfuse
