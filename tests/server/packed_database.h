// A small database of packed responses in memory, and its answers, worked out away from the server.
// Its packing tables are random words: what a server computes with them is the same, whether or not
// they mean anything.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/response_packer.h"
#include "host/system/memory.h"
#include "src/arithmetic/ring/prime_field.h"
#include "src/protocol/sha256.h"
#include "tests/server/tiny_database.h"
#include "tests/support.h"

namespace blindfuse::server_testing {

inline constexpr uint32_t kPackedRows = 2048;
inline constexpr uint32_t kPackedShards = 5;
inline constexpr uint32_t kPackedRecordBytes = 8 + 242;
inline constexpr uint32_t kPackedColumns = kPackedShards * kPackedRecordBytes;
inline constexpr uint32_t kPacks = 2;  // the last shard lies in both; the second is not full
inline constexpr uint64_t kKeysBytes = 24'576;
inline constexpr uint64_t kPackedResponseBytes = (kPackedColumns * kResponseBits + 7) / 8;

// Numbers below the packing modulus, the same for the same seed. Quicker than those of <random>: a
// table has 6.3 million.
class QuickNumbers {
 public:
  explicit QuickNumbers(uint64_t seed) : state_(seed) {}
  uint32_t operator()() {
    state_ = state_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    return static_cast<uint32_t>((state_ >> 32) * ring::kPackingModulus >> 32);
  }

 private:
  uint64_t state_;
};

// All tables are views of one piece of memory, a page apart, and so differ almost everywhere.
inline const std::vector<SharedPackingTable>& random_packing_tables() {
  static const std::vector<SharedPackingTable> tables = [] {
    constexpr size_t kApart = 1024;
    constexpr size_t kWords = kTableWords + kApart * (kPacks - 1);
    const std::shared_ptr<void> memory = map_memory("a test's packing tables", 4 * kWords);
    const auto words = static_cast<uint32_t*>(memory.get());
    std::generate_n(words, kWords, QuickNumbers(1));
    std::vector<SharedPackingTable> made;
    for (size_t p = 0; p < kPacks; ++p) made.emplace_back(memory, words + kApart * p);
    return made;
  }();
  return tables;
}

inline std::vector<uint8_t> quick_bytes(uint64_t seed, size_t count) {
  QuickNumbers numbers(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(numbers() >> 24);
  return bytes;
}

inline Layout packed_layout() {
  Layout layout;
  layout.key_count = 1000;
  layout.shard_count = kPackedShards;
  layout.row_count = kPackedRows;
  layout.arity = 3;
  layout.segment_length = 64;
  layout.record = {.digest_bytes = 8, .length_bytes = 0, .value_bytes = kPackedRecordBytes - 8};
  layout.lwe = find_lwe_params("ring-2048");
  layout.query_bits = kQueryBits;
  layout.response_bits = kResponseBits;
  layout.hint_bits = 18;
  return layout;
}

inline std::unique_ptr<Engine> packed_engine(
    std::unique_ptr<Engine> engine = support::PlainEngine::make(kPackedRows, kPackedColumns)) {
  engine->set_columns(0, quick_bytes(2, size_t{kPackedRows} * kPackedColumns));
  engine->seal();
  return engine;
}

inline LoadedDatabase packed_database() {
  LoadedDatabase database;
  database.manifest.layout = packed_layout();
  database.engine = packed_engine();
  database.packing_tables = random_packing_tables();
  database.table.shards.resize(kPackedShards);
  EpochDownloads downloads;
  for (uint32_t p = 0; p < kPacks; ++p) {
    // A mask: 2048 numbers of 18 bits.
    const auto mask = std::make_shared<const std::vector<uint8_t>>(quick_bytes(3 + p, 4608));
    downloads.hints.push_back(mask);
    database.table.packs.push_back({{}, sha256(*mask)});
  }
  downloads.table = serialize_epoch_table(database.table);
  database.manifest.table = sha256(downloads.table);
  database.epoch = epoch_id(database.manifest);
  downloads.manifest_text = serialize_manifest(database.manifest);
  database.downloads = std::make_shared<const EpochDownloads>(std::move(downloads));
  return database;
}

// A query with its keys, random all of it.
struct PackedQuery {
  Numbers numbers;   // of kQueryBits bits, one a row
  std::string keys;  // as they are sent

  explicit PackedQuery(uint64_t seed) {
    QuickNumbers quick(1000 + seed);
    for (uint32_t r = 0; r < kPackedRows; ++r) numbers.push_back(quick() >> (32 - kQueryBits));
    for (uint64_t i = 0; i < kKeysBytes / 4; ++i) append_key_word(quick());
  }

  std::string bytes() const { return pack(numbers, kQueryBits) + keys; }
  // Puts another word in the place of word i of the keys.
  void set_key_word(size_t i, uint32_t word) { keys.replace(4 * i, 4, bytes_of(word)); }

 private:
  static std::string bytes_of(uint32_t word) {
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(word >> (8 * i) & 0xff);
    return bytes;
  }
  void append_key_word(uint32_t word) { keys += bytes_of(word); }
};

inline std::string packed_query(uint64_t seed) { return PackedQuery(seed).bytes(); }

// What the server must answer: the sums from the definition, packed by ResponsePacker with the
// plain kernel, pack after pack, and lowered to the nearest of 2^11 numbers, of which Q are one
// turn.
inline std::string packed_response(const PackedQuery& query) {
  static const std::unique_ptr<Engine> engine = packed_engine();
  const auto& matrix = dynamic_cast<const support::PlainEngine&>(*engine);
  std::vector<uint32_t> words(kPackedColumns);
  for (uint32_t c = 0; c < kPackedColumns; ++c) {
    for (uint32_t r = 0; r < kPackedRows; ++r) {
      words[c] +=
          (query.numbers[r] << (32 - kQueryBits)) * static_cast<uint32_t>(int32_t{matrix.at(r, c)});
    }
  }
  static const ResponsePacker packer(ring_kernels().back());
  const PackingKeys keys = PackingKeys::read(support::as_bytes(query.keys));
  constexpr uint64_t kQ = 4'294'955'009;
  Numbers lowered;
  for (size_t p = 0; p < kPacks; ++p) {
    const size_t first = 1024 * p;
    const auto columns =
        std::span(words).subspan(first, std::min<size_t>(1024, kPackedColumns - first));
    std::array<uint32_t, 2048> body;
    const ResponsePacker::Task task{keys.words(), columns, body};
    packer.pack(PackingTable(random_packing_tables()[p].get(), kTableWords), {&task, 1});
    for (size_t c = 0; c < columns.size(); ++c) {
      const uint64_t nearest = ((uint64_t{2} * body[c] << kResponseBits) + kQ) / (2 * kQ);
      lowered.push_back(static_cast<uint32_t>(nearest % (1u << kResponseBits)));
    }
  }
  return pack(lowered, kResponseBits);
}

// To packed_query(seed). Kept, as it takes a while. One thread at a time.
inline const std::string& packed_response(uint64_t seed) {
  static std::map<uint64_t, std::string> known;
  std::string& response = known[seed];
  if (response.empty()) response = packed_response(PackedQuery(seed));
  return response;
}

}  // namespace blindfuse::server_testing
