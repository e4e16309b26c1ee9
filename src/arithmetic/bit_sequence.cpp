#include "src/arithmetic/bit_sequence.h"

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
void write_eight(const uint32_t* words, uint8_t* out, std::index_sequence<kIndex...>) {
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
  // The rest when 8 b bits are not a multiple of 32.
  constexpr uint32_t kWritten = kEight * kBits / 32 * 4;
  for (uint32_t byte = kWritten; byte < kBits; ++byte) {
    out[byte] = static_cast<uint8_t>(pending >> (8 * (byte - kWritten)));
  }
}

template <uint32_t kBits>
void write_eights(const uint32_t* words, size_t eights, uint8_t* out) {
  for (size_t i = 0; i < eights; ++i) {
    write_eight<kBits>(words + i * kEight, out + i * kBits, std::make_index_sequence<kEight>());
  }
}

// Reads up to 7 bytes after the last of the words.
template <uint32_t kBits>
void read_eights(const uint8_t* bytes, size_t eights, uint32_t* words) {
  for (size_t i = 0; i < eights; ++i) {
#pragma GCC unroll 8
    for (size_t j = 0; j < kEight; ++j) {
      const auto window = load_le<uint64_t>(bytes + i * kBits + j * kBits / 8);
      words[i * kEight + j] = restore_word(static_cast<uint32_t>(window >> (j * kBits % 8)), kBits);
    }
  }
}

using WriteEights = void (*)(const uint32_t*, size_t, uint8_t*);
using ReadEights = void (*)(const uint8_t*, size_t, uint32_t*);

// The function for `bits` is at bits - 1.
constexpr auto kWriteEights = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<WriteEights, 32>{write_eights<kIndex + 1>...};
}
(std::make_index_sequence<32>());
constexpr auto kReadEights = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<ReadEights, 32>{read_eights<kIndex + 1>...};
}
(std::make_index_sequence<32>());

// Word `index` of a sequence, near whose end eight bytes are not there to be read.
uint32_t read_one(std::span<const uint8_t> bytes, uint32_t bits, uint64_t index) {
  const uint64_t bit = index * bits;
  const auto rest = bytes.subspan(bit / 8);
  std::array<uint8_t, 8> window{};
  std::copy_n(rest.begin(), std::min(rest.size(), window.size()), window.begin());
  return restore_word(static_cast<uint32_t>(load_le<uint64_t>(window.data()) >> (bit % 8)), bits);
}

}  // namespace

void write_bit_sequence(std::span<const uint32_t> words, uint32_t bits, std::span<uint8_t> out) {
  invariant(bits >= 1 && bits <= 32, "words have 1 to 32 bits");
  invariant(out.size() == bit_sequence_bytes(words.size(), bits), "room for exactly the words");
  const size_t eights = words.size() / kEight;
  const WriteEights write = kWriteEights[bits - 1];
  write(words.data(), eights, out.data());
  const size_t left = words.size() % kEight;
  if (left == 0) return;
  std::array<uint32_t, kEight> last{};
  std::array<uint8_t, 4 * kEight> bytes;
  std::copy_n(words.begin() + static_cast<ptrdiff_t>(eights * kEight), left, last.begin());
  write(last.data(), 1, bytes.data());
  std::copy_n(bytes.begin(), out.size() - eights * bits,
              out.begin() + static_cast<ptrdiff_t>(eights * bits));
}

void read_bit_sequence(std::span<const uint8_t> bytes, uint32_t bits, uint64_t first,
                       std::span<uint32_t> words) {
  invariant(bits >= 1 && bits <= 32, "words have 1 to 32 bits");
  invariant(bit_sequence_bytes(first + words.size(), bits) <= bytes.size(),
            "the words lie in the sequence");
  size_t done = 0;
  // The loop ends at the first word that begins with a byte and is one of eight.
  for (; done < words.size() && (first + done) % kEight != 0; ++done) {
    words[done] = read_one(bytes, bits, first + done);
  }
  const uint64_t byte = (first + done) * bits / 8;
  if (bytes.size() >= byte + kEight) {
    const size_t eights =
        std::min<uint64_t>((words.size() - done) / kEight, (bytes.size() - byte - kEight) / bits);
    kReadEights[bits - 1](bytes.data() + byte, eights, words.data() + done);
    done += eights * kEight;
  }
  for (; done < words.size(); ++done) words[done] = read_one(bytes, bits, first + done);
}

bool is_bit_sequence(std::span<const uint8_t> bytes, uint64_t count, uint32_t bits) {
  if (bytes.size() != bit_sequence_bytes(count, bits)) return false;
  const uint32_t used = static_cast<uint32_t>(count * bits % 8);
  return used == 0 || (bytes.back() >> used) == 0;
}

}  // namespace blindfuse
