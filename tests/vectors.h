// Reads tests/vectors/*.json, the worked examples of docs/PROTOCOL.md. Shares no code with the
// product.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace vectors {

using nlohmann::json;

// Of a file of tests/vectors, by its name.
inline json read_vectors(const std::string& name) {
  std::ifstream file(blindfuse::paths::source_folder() + "/tests/vectors/" + name);
  return json::parse(file);
}

inline std::vector<uint8_t> from_hex(const json& text) {
  const auto hex = text.get<std::string>();
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// The same, of a length that the type fixes.
template <size_t kSize>
std::array<uint8_t, kSize> array_from_hex(const json& text) {
  const std::vector<uint8_t> bytes = from_hex(text);
  if (bytes.size() != kSize) throw std::runtime_error("hex of another length: " + text.dump());
  std::array<uint8_t, kSize> array;
  std::copy(bytes.begin(), bytes.end(), array.begin());
  return array;
}

// The same, as the product takes keys and values.
inline std::string string_from_hex(const json& text) {
  const std::vector<uint8_t> bytes = from_hex(text);
  return std::string(bytes.begin(), bytes.end());
}

inline std::string to_hex(std::span<const uint8_t> bytes) {
  const std::string digits = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : bytes) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

// Integers that may need 64 bits are written as text: "0x...".
inline uint64_t integer(const json& text) {
  return std::stoull(text.get<std::string>(), nullptr, 16);
}

// Secrets and errors, written "-0+".
inline std::vector<int> ternary(const json& signs) {
  std::vector<int> numbers;
  for (const char sign : signs.get<std::string>()) {
    numbers.push_back(sign == '+' ? 1 : sign == '-' ? -1 : 0);
  }
  return numbers;
}

}  // namespace vectors
