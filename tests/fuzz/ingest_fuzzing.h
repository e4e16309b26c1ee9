// What the fuzzers of the text readers share: the first byte of an input chooses the options and
// the buffer, the rest is the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "host/ingest/byte_source.h"
#include "host/ingest/key_value_source.h"
#include "host/ingest/line_reader.h"
#include "src/base/errors.h"

namespace blindfuse::fuzzing {

// Everything that a reader made of the text, the error included, as one string.
template <typename Source>
std::string digest_text(std::string_view text, const SourceOptions& options, size_t buffer_bytes) {
  // Small enough for a fuzzer to reach.
  constexpr size_t kMaxLineBytes = 4096;
  std::string digest;
  try {
    Source source(
        LineReader(std::make_unique<MemoryByteSource>(text, "fuzz"), buffer_bytes, kMaxLineBytes),
        options);
    KeyValuePair pair;
    while (source.next(pair)) {
      digest += std::to_string(pair.place) + ':' + std::to_string(pair.key.size()) + ':';
      digest += pair.key;
      digest += pair.value;
    }
  } catch (const InputError& error) {
    const std::string_view message = error.what();
    constexpr size_t kLongestMessage = 400;
    if (message.size() > kLongestMessage || message.find('\n') != std::string_view::npos) abort();
    digest += message;
  }
  return digest;
}

// Reads the text twice, with a small buffer and a large one: the outcome must be the same, and only
// InputError may be thrown.
template <typename Source>
int fuzz_text(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  SourceOptions options;
  options.index = (data[0] & 1) != 0;
  options.key_encoding = static_cast<TextEncoding>((data[0] >> 1) % 3);
  options.value_encoding = static_cast<TextEncoding>((data[0] >> 3) % 3);
  const size_t small_buffer = 1 + (data[0] >> 5);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string with_small = digest_text<Source>(text, options, small_buffer);
  const std::string with_large = digest_text<Source>(text, options, size_t{1} << 16);
  if (with_small != with_large) abort();
  return 0;
}

}  // namespace blindfuse::fuzzing
