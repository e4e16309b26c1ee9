#include "host/cpu/pipelines/pack_maker.h"

#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/system/zeroed_words.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using ring::kDimension;

constexpr size_t kPackWords = kPackColumns * kDimension;

class CpuPackMaker final : public PackMaker {
 public:
  CpuPackMaker(std::span<const uint32_t> blocks, std::span<const uint32_t> key_masks,
               uint64_t column_count)
      : column_count_(column_count),
        polynomials_(blocks),
        builder_({key_masks.begin(), key_masks.end()}),
        hints_(zeroed_words("hint polynomials",
                            (column_count + kPackColumns - 1) / kPackColumns * kPackWords)) {}

  void set_columns(uint64_t first, std::span<const uint8_t> bytes) override {
    const uint64_t rows = polynomials_.row_count();
    const uint64_t count = rows == 0 ? 0 : bytes.size() / rows;
    invariant(count * rows == bytes.size() && first + count <= column_count_,
              "whole columns of the packs");
    for (uint64_t c = 0; c < count; ++c) {
      const auto* column = reinterpret_cast<const int8_t*>(bytes.data() + c * rows);
      polynomials_.compute(
          {column, rows},
          ring::MutablePolynomial(hints_.data() + (first + c) * kDimension, kDimension));
    }
  }

  void seal() override {}

  void make(uint32_t pack, MutablePackingTable table, ring::MutablePolynomial mask) override {
    invariant(pack * kPackWords < hints_.size(), "a pack of the columns");
    builder_.build(std::span(hints_).subspan(pack * kPackWords, kPackWords), table, mask);
  }

 private:
  const uint64_t column_count_;
  const HintPolynomials polynomials_;
  const PackingTableBuilder builder_;
  // The hint polynomials of the packs' columns, one after another; zeros for columns that there are
  // not.
  std::vector<uint32_t> hints_;
};

}  // namespace

std::unique_ptr<PackMaker> make_cpu_pack_maker(std::span<const uint32_t> blocks,
                                               std::span<const uint32_t> key_masks,
                                               uint64_t column_count) {
  return std::make_unique<CpuPackMaker>(blocks, key_masks, column_count);
}

}  // namespace blindfuse
