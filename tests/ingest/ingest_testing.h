// What the tests of host/ingest share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/ingest/byte_source.h"
#include "host/ingest/key_value_source.h"
#include "host/ingest/line_reader.h"
#include "src/base/errors.h"
#include "tests/publish/builder_testing.h"

namespace blindfuse::ingest_testing {

using namespace std::string_literals;
using namespace std::string_view_literals;

struct Pair {
  std::string key;
  std::string value;
  uint64_t place = 0;
  bool operator==(const Pair&) const = default;
};

// What reading a source to its end gave: the pairs, and the error that stopped it, if one did.
struct Outcome {
  std::vector<Pair> pairs;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  for (const Pair& pair : outcome.pairs) {
    out << pair.place << ": " << testing::PrintToString(pair.key) << " = "
        << testing::PrintToString(pair.value) << "\n";
  }
  return out << "error: " << outcome.error;
}

inline Outcome pairs(std::vector<Pair> expected) { return {std::move(expected), ""}; }

inline SourceOptions index_options() {
  SourceOptions options;
  options.index = true;
  return options;
}

// Memory that gives at most `most` bytes a read, as a pipe may.
class ShortReads : public ByteSource {
 public:
  ShortReads(std::string_view bytes, size_t most) : bytes_(bytes, "words"), most_(most) {}

  size_t read(std::span<char> into) override {
    return bytes_.read(into.first(std::min(most_, into.size())));
  }
  const std::string& name() const override { return bytes_.name(); }
  std::optional<uint64_t> bytes_total() const override { return std::nullopt; }

 private:
  MemoryByteSource bytes_;
  size_t most_;
};

// The message of the InputError that `act` throws, which is one line; empty when it throws none.
inline std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find_first_of("\n\r\0"s), std::string::npos) << message;
    return message;
  }
  return "";
}

inline Outcome read_all(const std::function<std::unique_ptr<KeyValueSource>()>& open) {
  Outcome outcome;
  outcome.error = error_of([&] {
    const std::unique_ptr<KeyValueSource> source = open();
    KeyValuePair pair;
    while (source->next(pair)) {
      outcome.pairs.push_back({std::string(pair.key), std::string(pair.value), pair.place});
    }
    EXPECT_FALSE(source->next(pair)) << "the end stays the end";
  });
  return outcome;
}

// Reads `text`, called "words", with buffers and reads of every small size and of the usual one,
// and expects the same every time.
template <typename Source>
Outcome read_text(std::string_view text, const SourceOptions& options = {},
                  size_t max_line_bytes = LineReader::kMaxLineBytes) {
  const auto read = [&](size_t buffer_bytes, size_t read_bytes) {
    return read_all([&] {
      LineReader lines(std::make_unique<ShortReads>(text, read_bytes), buffer_bytes,
                       max_line_bytes);
      return std::make_unique<Source>(std::move(lines), options);
    });
  };
  const Outcome usual = read(LineReader::kBufferBytes, LineReader::kBufferBytes);
  for (size_t buffer_bytes = 1; buffer_bytes <= 7; ++buffer_bytes) {
    for (size_t read_bytes = 1; read_bytes <= buffer_bytes; ++read_bytes) {
      EXPECT_EQ(read(buffer_bytes, read_bytes), usual)
          << "buffer of " << buffer_bytes << ", reads of " << read_bytes;
    }
  }
  return usual;
}

class TemporaryDirectory {
 public:
  std::string path(const std::string& file) const { return folder_ / file.c_str(); }

  std::string write(const std::string& file, std::string_view content) const {
    std::ofstream(path(file), std::ios::binary) << content;
    return path(file);
  }

 private:
  const builder_testing::TemporaryFolder folder_;
};

}  // namespace blindfuse::ingest_testing
