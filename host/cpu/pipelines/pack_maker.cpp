#include "host/cpu/pipelines/pack_maker.h"

#include <vector>

#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/system/memory.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using ring::kDimension;

constexpr size_t kPackWords = kPackColumns * kDimension;

// There is one element for each bucket.
std::vector<HintPolynomials> polynomials_of(std::span<const uint32_t> blocks, uint64_t row_count) {
  invariant(row_count == 0 ? blocks.empty() : blocks.size() % row_count == 0,
            "whole buckets of public polynomials");
  std::vector<HintPolynomials> polynomials;
  for (uint64_t first = 0; first < blocks.size(); first += row_count) {
    polynomials.emplace_back(blocks.subspan(first, row_count));
  }
  return polynomials;
}

class CpuPackMaker final : public PackMaker {
 public:
  CpuPackMaker(std::span<const uint32_t> blocks, std::span<const uint32_t> key_masks,
               uint64_t row_count, uint64_t column_count)
      : row_count_(row_count),
        column_count_(column_count),
        polynomials_(polynomials_of(blocks, row_count)),
        builder_({key_masks.begin(), key_masks.end()}),
        hints_(zeroed_words("hint polynomials",
                            (column_count + kPackColumns - 1) / kPackColumns * kPackWords)) {}

  void set_columns(uint64_t first, std::span<const uint8_t> bytes, size_t bucket) override {
    const uint64_t rows = row_count_;
    const uint64_t count = rows == 0 ? 0 : bytes.size() / rows;
    invariant(count * rows == bytes.size() && first + count <= column_count_,
              "whole columns of the packs");
    invariant(count == 0 || bucket < polynomials_.size(), "columns of one of the buckets");
    for (uint64_t c = 0; c < count; ++c) {
      const auto* column = reinterpret_cast<const int8_t*>(bytes.data() + c * rows);
      polynomials_[bucket].compute(
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
  const uint64_t row_count_;
  const uint64_t column_count_;
  const std::vector<HintPolynomials> polynomials_;  // of each bucket
  const PackingTableBuilder builder_;
  // The hint polynomials of the packs' columns, one after another; zeros for columns that there are
  // not.
  std::vector<uint32_t> hints_;
};

}  // namespace

std::unique_ptr<PackMaker> make_cpu_pack_maker(std::span<const uint32_t> blocks,
                                               std::span<const uint32_t> key_masks,
                                               uint64_t row_count, uint64_t column_count) {
  return std::make_unique<CpuPackMaker>(blocks, key_masks, row_count, column_count);
}

}  // namespace blindfuse
