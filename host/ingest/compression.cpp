#include "host/ingest/compression.h"

#include <algorithm>
#include <array>
#include <string>

#include "host/ingest/input_error.h"

namespace blindfuse {
namespace {

using namespace std::string_view_literals;

struct Compression {
  std::string_view name;
  std::string_view magic;  // a file's first bytes
  std::string_view extension;
  std::string_view command;  // writes what FILE holds to standard output
};

constexpr std::array<Compression, 4> kCompressions = {{
    {"gzip", "\x1f\x8b"sv, ".gz", "gunzip -c"},
    {"zstd", "\x28\xb5\x2f\xfd"sv, ".zst", "zstd -dc"},
    {"xz", "\xfd\x37\x7a\x58\x5a\x00"sv, ".xz", "xz -dc"},
    {"zip", "PK\x03\x04"sv, ".zip", "unzip -p"},
}};
static_assert(std::ranges::all_of(kCompressions, [](const Compression& compression) {
  return compression.magic.size() <= kCompressionMagicBytes;
}));

[[noreturn]] void refuse(std::string_view name, const Compression& compression) {
  fail_input(name, "this is " + std::string(compression.name) +
                       "-compressed; decompress it: " + std::string(compression.command) +
                       " FILE | blindfuse build - --format tsv|csv|ndjson ...");
}

}  // namespace

void refuse_compressed(std::string_view name, std::string_view start) {
  for (const Compression& compression : kCompressions) {
    if (start.starts_with(compression.magic)) refuse(name, compression);
  }
}

void refuse_compressed_name(std::string_view path) {
  for (const Compression& compression : kCompressions) {
    if (path.ends_with(compression.extension)) refuse(path, compression);
  }
}

bool may_be_compressed(std::string_view start) {
  return std::ranges::any_of(kCompressions, [&](const Compression& compression) {
    return compression.magic.starts_with(start);
  });
}

}  // namespace blindfuse
