// One epoch, read from its directory into memory. Every file is checked against its hash.
#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/arithmetic/packing_table.h"
#include "src/engine/engine.h"
#include "src/engine/engine_maker.h"
#include "src/protocol/epoch_table.h"
#include "src/protocol/manifest.h"

namespace blindfuse {

// A part of the hint, a bit sequence: a shard's hint, or a pack's mask. Epochs with the same part
// share it.
using SharedHintPart = std::shared_ptr<const std::vector<uint8_t>>;

// The files that clients download. A download keeps them in memory, also after the rest of the
// epoch has been freed.
struct EpochDownloads {
  std::string manifest_text;  // as it is on disk
  std::vector<uint8_t> table;
  std::vector<SharedHintPart> hints;  // all parts, of hint_part_bytes() each

  uint64_t hint_bytes() const { return hints.empty() ? 0 : hints.size() * hints.front()->size(); }
};

struct LoadedDatabase {
  Manifest manifest;
  EpochId epoch;
  std::time_t published_at = 0;  // the time of manifest.json
  EpochTable table;
  std::shared_ptr<const EpochDownloads> downloads;
  // The words and products of the canary, if the engine computes on a device
  // (EngineMaker::computes_on_device).
  std::optional<Canary> canary;
  // Holds the matrix, and is sealed. R rows, C columns: shard i has columns i W .. (i+1) W - 1.
  std::unique_ptr<Engine> engine;
  std::vector<SharedPackingTable> packing_tables;  // one a pack, where responses are packed
  std::vector<EpochId> retired;  // earlier epochs of this directory, the newest last
  uint64_t reused_bytes = 0;     // of matrix, hints and tables, taken from the previous epoch
};

// Loads an epoch. `previous` is another epoch in memory. Shards, hints and packing tables that have
// the same hash at the same place of the same layout there are taken from it: their files are
// neither read nor checked, and memory is shared if possible. `previous` may be in use meanwhile,
// and may be freed later.
//
// Throws InputError, which names the file, if the directory is not a database, if its signature is
// wrong, or if a file that is read is missing, truncated or altered. Throws ResourceError if memory
// does not hold the epoch, and the errors of EngineMaker::make_serving_engine. on_step is called
// every few megabytes, and ends the load with the exception that it throws. batch_max: queries in
// the batches that the engine will answer.
LoadedDatabase load_database(
    const std::filesystem::path& directory, const EngineMaker& engines,
    const LoadedDatabase* previous = nullptr, const std::function<void()>& on_step = [] {},
    size_t batch_max = ServingNeeds().batch_max);

// The words of a canary for this many rows: uniform multiples of 2^(32 - query_bits), from a seed
// that the system gave this process. Equal arguments give equal words, so that epochs that share
// columns share their products.
std::vector<uint32_t> canary_words(uint64_t row_count, uint32_t query_bits);

// Weights of this many columns, for the check of all products: uniform odd words, drawn from the
// system for each call. They are secret only so that no fault can depend on them.
std::vector<uint32_t> product_weights(uint64_t column_count);

// Multiplies one canary's words with columns. Any thread.
class CanaryProducts {
 public:
  explicit CanaryProducts(std::span<const uint32_t> words);

  // products[c] = sum over r of words[r] * int8(columns[c * R + r]) modulo 2^32, for each of
  // products.size() columns.
  void multiply(std::span<const uint8_t> columns, std::span<uint32_t> products) const;

 private:
  // word = low + 2^16 high modulo 2^32: products of 16 bits, which every processor has on vectors.
  std::vector<int16_t> low_;
  std::vector<int16_t> high_;
};

}  // namespace blindfuse
