// A packing key as a query brings it. It is longer than inputs get, so an input is how many
// bytes there are more or less than there should be, and then changes to zeros, of six bytes each:
// the place of a word, and the word. It is refused exactly when the length is wrong or a word is
// not below the modulus; otherwise every word is where the packer looks for it.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "host/cpu/packing/packing_keys.h"
#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"

namespace {

using namespace blindfuse;

constexpr size_t kWords = 6'144;
constexpr size_t kBytes = 4 * kWords;
constexpr uint32_t kModulus = 4'294'955'009;

void check_message(std::string_view message) {
  invariant(!message.empty() && message.size() <= 200, "a message is a line");
  for (const char c : message) invariant(c >= ' ' && c <= '~', "a message is text");
}

void check_places(const PackingKeys& keys, const std::vector<uint32_t>& words) {
  for (size_t half = 0; half < kWords / 1024; ++half) {
    for (size_t i = 0; i < 1024 + 16; ++i) {
      invariant(keys.words()[half * (1024 + 16) + i] == words[half * 1024 + i % 1024],
                "halves are there with their beginnings behind them");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t length = kBytes - 128 + (data[0] + size_t{128}) % 256;
  std::vector<uint32_t> words(kWords);
  bool right = length == kBytes;
  for (size_t at = 1; at + 6 <= size; at += 6) {
    words[load_le<uint16_t>(data + at) % kWords] = load_le<uint32_t>(data + at + 2);
  }
  std::vector<uint8_t> bytes(kBytes);
  for (size_t i = 0; i < kWords; ++i) {
    store_le(bytes.data() + 4 * i, words[i]);
    right = right && words[i] < kModulus;
  }
  bytes.resize(length);
  bool refused = false;
  try {
    check_packing_key(bytes);
  } catch (const InputError& error) {
    refused = true;
    check_message(error.what());
  }
  invariant(refused != right, "refused when there is a reason, and only then");
  if (right) check_places(PackingKeys::read(bytes), words);
  return 0;
}
