#include "host/server/serving/packed_answer_pipeline.h"

#include <algorithm>
#include <utility>

#include "host/packing/batch_packer.h"
#include "host/packing/packing_keys.h"
#include "host/server/serving/slot_words.h"
#include "host/worker_threads.h"
#include "src/bit_packing.h"
#include "src/errors.h"
#include "src/ring/modulus_switch.h"

namespace blindfuse {
namespace {

using ring::kDimension;

class PackedAnswerPipeline final : public AnswerPipeline {
 public:
  PackedAnswerPipeline(Engine& engine, const Layout& layout, std::vector<SharedPackingTable> tables,
                       size_t slot_count, size_t batch_max, unsigned thread_count)
      : engine_(engine),
        layout_(layout),
        pack_count_(tables.size()),
        threads_(thread_count),
        packer_(std::move(tables), threads_),
        words_("words", slot_count, layout.row_count),
        keys_("packing keys", slot_count, PackingKeys::kWords),
        products_("products", batch_max, layout.column_count()),
        bodies_("packed responses", batch_max, pack_count_ * kDimension) {
    invariant(pack_count_ == layout.pack_count(), "a packing table for every pack");
  }

  size_t depth() const override { return 1; }

  void put(size_t slot, std::span<const uint8_t> query) override {
    unpack_restored(query.first(layout_.query_words_bytes()), layout_.query_bits, 0, words_[slot]);
    PackingKeys::unpack(query.subspan(layout_.query_words_bytes()),
                        keys_[slot].first<PackingKeys::kWords>());
  }

  void move(size_t from, size_t to) override {
    std::ranges::copy(words_[from], words_[to].begin());
    std::ranges::copy(keys_[from], keys_[to].begin());
  }

  void begin(size_t first, size_t count) override {
    first_ = first;
    count_ = count;
  }

  std::span<const uint8_t> finish() override {
    const uint64_t rows = layout_.row_count;
    const uint64_t columns = layout_.column_count();
    std::fill_n(products_[0].data(), count_ * columns, 0u);
    engine_.multiply({words_[first_].data(), count_, rows}, {0, rows},
                     {products_[0].data(), count_, columns});
    pack();
    const uint64_t response_bytes = layout_.response_bytes();
    responses_.resize(count_ * response_bytes);
    threads_.run_each(count_, [&](unsigned, size_t i) {
      pack_rounded(products_[i], layout_.response_bits,
                   std::span(responses_).subspan(i * response_bytes, response_bytes));
    });
    return responses_;
  }

 private:
  // The response words of the batch become coefficients of the packs' bodies, lowered.
  void pack() {
    std::vector<BatchPacker::Query> queries;
    for (size_t i = 0; i < count_; ++i) {
      queries.push_back({keys_[first_ + i].data(), products_[i], bodies_[i]});
    }
    packer_.pack(queries);
    threads_.run_each(pack_count_ * count_, [&](unsigned, size_t one) {
      const size_t i = one % count_;
      const uint64_t first = one / count_ * kDimension;
      const uint64_t last = std::min(first + kDimension, layout_.column_count());
      for (uint64_t c = first; c < last; ++c) {
        products_[i][c] =
            restore_word(ring::lower(bodies_[i][c], layout_.response_bits), layout_.response_bits);
      }
    });
  }

  Engine& engine_;
  const Layout layout_;
  const size_t pack_count_;
  WorkerThreads threads_;
  BatchPacker packer_;
  const SlotWords words_;     // R for each slot
  const SlotWords keys_;      // PackingKeys::kWords for each slot
  const SlotWords products_;  // C for each query of a batch
  const SlotWords bodies_;    // 2048 for each pack, for each query of a batch
  std::vector<uint8_t> responses_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace

std::unique_ptr<AnswerPipeline> make_packed_answer_pipeline(Engine& engine, const Layout& layout,
                                                            std::vector<SharedPackingTable> tables,
                                                            size_t slot_count, size_t batch_max,
                                                            unsigned thread_count) {
  return std::make_unique<PackedAnswerPipeline>(engine, layout, std::move(tables), slot_count,
                                                batch_max, thread_count);
}

}  // namespace blindfuse
