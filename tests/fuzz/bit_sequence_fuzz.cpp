// Bit sequences. The first byte chooses the number of bits, the second where to begin unpacking,
// and the rest is taken once as words to write and once as bytes that a peer sent.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "src/arithmetic/bit_sequence.h"

namespace {

using blindfuse::bit_sequence_bytes;
using blindfuse::is_bit_sequence;
using blindfuse::read_bit_sequence;
using blindfuse::restore_word;
using blindfuse::round_word;
using blindfuse::write_bit_sequence;

using Bytes = std::vector<uint8_t>;
using Words = std::vector<uint32_t>;

void require(bool holds) {
  if (!holds) std::abort();
}

Bytes pack(const Words& words, uint32_t bits) {
  Bytes packed(bit_sequence_bytes(words.size(), bits), 0xaa);
  write_bit_sequence(words, bits, packed);
  require(is_bit_sequence(packed, words.size(), bits));
  return packed;
}

// Words first .. count-1.
Words unpack(std::span<const uint8_t> packed, uint32_t bits, size_t first, size_t count) {
  Words words(count - first, 0xaaaaaaaa);
  read_bit_sequence(packed, bits, first, words);
  return words;
}

void try_words(const Words& words, uint32_t bits, size_t first) {
  const Bytes packed = pack(words, bits);
  Words expected;
  for (size_t i = first; i < words.size(); ++i) {
    expected.push_back(restore_word(round_word(words[i], bits), bits));
  }
  require(unpack(packed, bits, first, words.size()) == expected);
}

// A byte string that is_bit_sequence takes is what packing its own words gives: no other passes for
// it.
void try_packed(std::span<const uint8_t> bytes, uint32_t bits, size_t first) {
  const size_t count = bytes.size() * 8 / bits;
  for (size_t some = count < 2 ? 0 : count - 2; some <= count + 1; ++some) {
    if (!is_bit_sequence(bytes, some, bits)) continue;
    const Words words = unpack(bytes, bits, 0, some);
    require(std::ranges::equal(pack(words, bits), bytes));
    const size_t from = std::min(first, some);
    const Words rest = unpack(bytes, bits, from, some);
    require(std::ranges::equal(rest, std::span(words).subspan(from)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint32_t bits = 1 + data[0] % 32;
  const std::span<const uint8_t> rest(data + 2, size - 2);
  Words words(rest.size() / 4);
  if (!words.empty()) std::memcpy(words.data(), rest.data(), words.size() * 4);
  try_words(words, bits, std::min<size_t>(data[1], words.size()));
  try_packed(rest, bits, data[1]);
  return 0;
}
