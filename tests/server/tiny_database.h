// A small database in memory, engines that tests control, and the answers worked out by hand: plain
// loops that share nothing with the code under test.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "host/database/loaded_database.h"
#include "host/server/serving/serving_epoch.h"
#include "src/base/errors.h"
#include "src/engine/engine.h"
#include "tests/plain_engine.h"

namespace blindfuse::server_testing {

inline constexpr uint32_t kRows = 128;
inline constexpr uint32_t kShards = 5;
inline constexpr uint32_t kRecordBytes = 8 + 3;
inline constexpr uint32_t kColumns = kShards * kRecordBytes;
inline constexpr uint32_t kQueryBits = 28;
inline constexpr uint32_t kResponseBits = 11;
inline constexpr uint64_t kQueryBytes = kRows * kQueryBits / 8;
inline constexpr uint64_t kResponseBytes = (kColumns * kResponseBits + 7) / 8;

inline const EpochId kOldEpoch(64, '0');

inline LoadedDatabase tiny_database(
    std::unique_ptr<Engine> engine = support::PlainEngine::make(kRows, kColumns)) {
  LoadedDatabase database;
  Layout& layout = database.manifest.layout;
  layout.key_count = 200;
  layout.shard_count = kShards;
  layout.row_count = kRows;
  layout.arity = 3;
  layout.segment_length = 64;
  layout.record = {.digest_bytes = 8, .length_bytes = 0, .value_bytes = 3};
  layout.lwe = find_lwe_params("lwe-1288");
  layout.query_bits = kQueryBits;
  layout.response_bits = kResponseBits;
  layout.hint_bits = 18;

  std::mt19937_64 random(20'240'601);
  database.engine = std::move(engine);
  std::vector<uint8_t> bytes(kRows * kColumns);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  database.engine->set_columns(0, bytes);
  database.engine->seal();
  EpochDownloads downloads;
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    std::vector<uint8_t> hint(layout.hint_part_bytes());
    for (uint8_t& byte : hint) byte = static_cast<uint8_t>(random());
    downloads.hints.push_back(std::make_shared<const std::vector<uint8_t>>(std::move(hint)));
  }
  database.table.shards.resize(kShards);
  downloads.table = serialize_epoch_table(database.table);
  database.manifest.table = sha256(downloads.table);
  database.epoch = epoch_id(database.manifest);
  downloads.manifest_text = serialize_manifest(database.manifest);
  database.downloads = std::make_shared<const EpochDownloads>(std::move(downloads));
  database.retired = {kOldEpoch};
  return database;
}

// The hints of these shards, one after another.
inline std::string hints_of(const LoadedDatabase& database, uint32_t first, uint32_t last) {
  std::string hints;
  for (uint32_t i = first; i <= last; ++i) {
    const auto& part = *database.downloads->hints[i];
    hints.append(part.begin(), part.end());
  }
  return hints;
}

// The upper bits of each word, as a client would send them.
using Numbers = std::vector<uint32_t>;

inline Numbers random_query(uint64_t seed) {
  std::mt19937_64 random(seed);
  Numbers numbers(kRows);
  for (uint32_t& number : numbers) number = static_cast<uint32_t>(random() >> (64 - kQueryBits));
  return numbers;
}

// Bit by bit, the lowest first.
inline std::string pack(const Numbers& numbers, uint32_t bits) {
  std::string bytes((numbers.size() * bits + 7) / 8, '\0');
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (uint32_t b = 0; b < bits; ++b) {
      if ((numbers[i] >> b & 1u) == 0) continue;
      const size_t at = i * bits + b;
      bytes[at / 8] = static_cast<char>(bytes[at / 8] | (1 << (at % 8)));
    }
  }
  return bytes;
}

// What the server must answer, from the definition: the sum, rounded to the nearest number, ties to
// even.
inline std::string expected_response(const Numbers& query) {
  static const LoadedDatabase database = tiny_database();
  const auto& matrix = support::PlainEngine::in(database);
  Numbers rounded;
  for (uint32_t c = 0; c < kColumns; ++c) {
    int64_t sum = 0;
    for (uint32_t r = 0; r < kRows; ++r) {
      sum += int64_t{query[r]} * 16 * matrix.at(r, c);  // 16 = 2^(32 - query_bits)
    }
    const int64_t q = int64_t{1} << 32;
    const int64_t word = ((sum % q) + q) % q;
    const int64_t step = int64_t{1} << (32 - kResponseBits);
    const int64_t below = word / step;
    const int64_t twice_rest = 2 * (word % step);
    const bool up = twice_rest > step || (twice_rest == step && below % 2 == 1);
    rounded.push_back(
        static_cast<uint32_t>((below + (up ? 1 : 0)) % (int64_t{1} << kResponseBits)));
  }
  return pack(rounded, kResponseBits);
}

// Some random queries as they are sent, one after another, or their responses.
inline std::string queries(uint64_t count, uint64_t seed = 0) {
  std::string all;
  for (uint64_t i = 0; i < count; ++i) all += pack(random_query(seed + i), kQueryBits);
  return all;
}
inline std::string responses(uint64_t count, uint64_t seed = 0) {
  std::string all;
  for (uint64_t i = 0; i < count; ++i) all += expected_response(random_query(seed + i));
  return all;
}

// Multiplies with plain loops. A test can hold it back before every product, and make it fail.
class TestEngine final : public support::PlainEngine {
 public:
  // Outlives the engine, which a server destroys when it likes.
  struct Control {
    std::mutex mutex;
    std::condition_variable changed;
    bool held = false;
    bool failing = false;
    std::optional<size_t> failing_batch;  // one that fails alone: 0 is the first
    std::vector<size_t> batches;          // the sizes of those that have begun

    void hold() { set(held, true); }
    void release() { set(held, false); }
    void fail(bool on) { set(failing, on); }
    void fail_batch(size_t number) {
      const std::lock_guard lock(mutex);
      failing_batch = number;
    }
    void wait_for_batches(size_t count) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return batches.size() >= count; });
    }

   private:
    void set(bool& flag, bool value) {
      const std::lock_guard lock(mutex);
      flag = value;
      changed.notify_all();
    }
  };

  explicit TestEngine(std::shared_ptr<Control> control, uint64_t rows = kRows,
                      uint64_t columns = kColumns)
      : PlainEngine(rows, columns), control_(std::move(control)) {}

  void multiply_columns(QueryBatch queries, RowRange rows, ColumnRange columns,
                        ProductBatch products) override {
    {
      std::unique_lock lock(control_->mutex);
      const size_t number = control_->batches.size();
      control_->batches.push_back(queries.count);
      control_->changed.notify_all();
      control_->changed.wait(lock, [&] { return !control_->held; });
      if (control_->failing || control_->failing_batch == number)
        throw ResourceError("the test wants a failure");
    }
    PlainEngine::multiply_columns(queries, rows, columns, products);
  }

 private:
  const std::shared_ptr<Control> control_;
};

inline std::shared_ptr<const ServingEpoch> tiny_epoch(
    std::shared_ptr<TestEngine::Control> control = std::make_shared<TestEngine::Control>(),
    const BatchLimits& limits = {.batch_max = 4, .queue_max = 8},
    BatchObserver* observer = nullptr) {
  return std::make_shared<const ServingEpoch>(
      tiny_database(std::make_unique<TestEngine>(std::move(control))), limits, observer);
}

}  // namespace blindfuse::server_testing
