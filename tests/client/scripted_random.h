// Random bytes that make a client draw the numbers of an example.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/errors.h"
#include "src/system/random.h"

namespace blindfuse {

// Bytes of which sample_ternary() makes these numbers, each written "-", "0" or "+": one text a
// call. A byte holds five, as digits in base 3, the lowest first.
inline RandomSource scripted(const std::vector<std::string>& texts) {
  const auto left = std::make_shared<std::deque<std::string>>(texts.begin(), texts.end());
  return [left](std::span<uint8_t> bytes) {
    if (left->empty()) throw ResourceError("more numbers are asked for than there are");
    const std::string text = left->front();
    left->pop_front();
    std::fill(bytes.begin(), bytes.end(), uint8_t{0});
    for (size_t i = text.size(); i-- > 0;) {
      const int digit = text[i] == '-' ? 0 : text[i] == '0' ? 1 : 2;
      bytes[i / 5] = static_cast<uint8_t>(3 * bytes[i / 5] + digit);
    }
  };
}

}  // namespace blindfuse
