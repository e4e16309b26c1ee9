#include "client/secret.h"

#include <algorithm>
#include <cstring>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

constexpr size_t kBlockBytes = 64 * 1024;
constexpr uint32_t kDigits = 5;  // 3^5 = 243 fits a byte
constexpr uint32_t kAccepted = 243;

// `count` numbers take 256 / 243 bytes for five on average. This is a little more.
size_t bytes_for(size_t count) {
  const size_t groups = count / kDigits + 1;
  return groups + groups / 16 + 8;
}

// Writes the base 3 digits of `byte`, each less one. Multiplying by 171 / 512 divides a number
// below 512 by three: a table or a division would take a time that depends on the secret.
void write_digits(uint32_t byte, std::span<uint32_t> words) {
  for (uint32_t& word : words) {
    const uint32_t quotient = (byte * 171) >> 9;
    word = byte - 3 * quotient - 1;
    byte = quotient;
  }
}

}  // namespace

void wipe_memory(void* memory, size_t bytes) { explicit_bzero(memory, bytes); }

void sample_ternary(const RandomSource& random, std::span<uint32_t> words) {
  SecretBuffer<uint8_t> block(std::min(kBlockBytes, bytes_for(words.size())));
  while (!words.empty()) {
    const auto bytes = block.span().first(std::min(block.size(), bytes_for(words.size())));
    random(bytes);
    for (uint32_t byte : bytes) {
      if (byte >= kAccepted) continue;
      const size_t count = std::min<size_t>(kDigits, words.size());
      write_digits(byte, words.first(count));
      words = words.subspan(count);
    }
  }
}

void sample_errors(const RandomSource& random, uint32_t max, std::span<uint32_t> words) {
  invariant(max == 1 || max == 4, "errors are of one ternary digit or of two");
  sample_ternary(random, words);
  if (max == 1) return;
  constexpr size_t kBlockWords = 16'384;
  SecretBuffer<uint32_t> digits(std::min(kBlockWords, words.size()));
  for (size_t done = 0; done < words.size();) {
    const auto upper = digits.span().first(std::min(digits.size(), words.size() - done));
    sample_ternary(random, upper);
    for (const uint32_t digit : upper) words[done++] += 3 * digit;
  }
}

}  // namespace blindfuse
