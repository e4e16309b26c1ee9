// The shapes that are measured, and how often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse::bench {

struct Shape {
  std::string_view name;
  uint64_t rows;
  uint64_t columns;
};

// Each is far larger than any cache of a GPU: 4.3, 15.3, 1.2, 1.4 and 64 GB.
inline constexpr Shape kScanShapes[] = {
    {"square", 131'072, 32'768}, {"billion", 233'472, 65'536}, {"tall", 1'179'648, 1'040},
    {"flat", 40'960, 33'056},    {"huge", 488'448, 131'072},
};
// The first shape's responses are also packed under clients' secrets, with 32 packing tables, in
// batches of these sizes.
inline constexpr size_t kPackedBatches[] = {1, 8, 64};
// The columns of a shard of the first shape, one pack, where a response has two levels.
inline constexpr uint32_t kShardColumns = 1'024;
// Requests for 64 keys in 2^20 values of 1 KiB, as they are planned: 96 buckets of four shards.
inline constexpr Shape kBucketShape{"buckets", 12'288, 396'288};
inline constexpr size_t kBuckets = 96;
// A million rows of one record of 1 KiB.
inline constexpr Shape kHintShape{"hint", 1'048'576, 1'032};
// 32 packs: the tables and masks of packed responses.
inline constexpr Shape kPackShape{"packs", 131'072, 32'768};
// The shape on which the kernels have to agree first: 338 MB, so that every ring of stages goes
// round several times on 132 multiprocessors. Neither the steps of rows nor the tiles of columns
// come out even.
inline constexpr Shape kCheckShape{"check", 40'960 + 128, 8'232};

// The shapes that replace these in a rehearsal.
inline constexpr Shape kTinyShapes[] = {{"tiny", 1'216, 96}};
inline constexpr uint32_t kTinyShardColumns = 2;
inline constexpr Shape kTinyBucketShape{"buckets", 2'048, 96};
inline constexpr size_t kTinyBuckets = 4;
inline constexpr Shape kTinyHintShape{"hint", 256, 40};
inline constexpr Shape kTinyPackShape{"packs", 2'048, 1'024};
inline constexpr Shape kTinyCheckShape{"check", 320 + 64, 72};

// The other bytes and times of a measurement.
struct Sizes {
  uint64_t operand_bytes = uint64_t{2} << 30;    // of the yardstick of products
  uint64_t sent_bytes = uint64_t{256} << 20;     // by the yardstick of transfers
  uint64_t lead_in_bytes = uint64_t{256} << 20;  // read before the clock begins
  double round_seconds = 0.25;                   // of batches one after another: hundreds
};
inline constexpr Sizes kTinySizes{uint64_t{64} << 20, uint64_t{1} << 20, uint64_t{64} << 10, 0.02};

inline constexpr int kDevice = 0;

struct Options {
  std::vector<std::string> kernels = {"all"};
  std::vector<std::string> measurements = {"scan",    "answers", "packed", "two-levels",
                                           "buckets", "hint",    "packs"};
  std::vector<std::string> shapes;  // none: all of them
  std::vector<size_t> batches = {1, 2, 3, 4, 8, 16, 32, 48, 64, 96, 128, 256};
  unsigned rounds = 7;
  std::string json_file;
  // Shapes, batches and sizes that an emulated GPU is through with at once. Times mean nothing, and
  // there is no yardstick of products.
  bool rehearsal = false;

  std::span<const Shape> scan_shapes() const {
    return rehearsal ? std::span<const Shape>(kTinyShapes) : std::span<const Shape>(kScanShapes);
  }
  const Shape& packed_shape() const { return scan_shapes().front(); }
  uint32_t shard_columns() const { return rehearsal ? kTinyShardColumns : kShardColumns; }
  const Shape& bucket_shape() const { return rehearsal ? kTinyBucketShape : kBucketShape; }
  size_t buckets() const { return rehearsal ? kTinyBuckets : kBuckets; }
  const Shape& hint_shape() const { return rehearsal ? kTinyHintShape : kHintShape; }
  const Shape& pack_shape() const { return rehearsal ? kTinyPackShape : kPackShape; }
  const Shape& check_shape() const { return rehearsal ? kTinyCheckShape : kCheckShape; }
  const Sizes& sizes() const {
    static constexpr Sizes kSizes{};
    return rehearsal ? kTinySizes : kSizes;
  }
};

}  // namespace blindfuse::bench
