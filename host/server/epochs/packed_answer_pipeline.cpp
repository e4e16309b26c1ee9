#include "host/server/epochs/packed_answer_pipeline.h"

#include <algorithm>
#include <utility>

#include "host/packing/packing_keys.h"
#include "host/packing/response_packer.h"
#include "host/server/epochs/slot_words.h"
#include "host/worker_threads.h"
#include "src/bit_packing.h"
#include "src/errors.h"
#include "src/ring/modulus_switch.h"

namespace blindfuse {
namespace {

using ring::kDimension;

// A table is read by whole groups of points; so many of them are one thread's share at a time, 1.6
// MB, that 32 threads have work even where there is but one pack.
constexpr size_t kGroupsAtOnce = 4;
constexpr size_t kSharesOfPack = kPointGroups / kGroupsAtOnce;

class PackedAnswerPipeline final : public AnswerPipeline {
 public:
  PackedAnswerPipeline(Engine& engine, const Layout& layout, std::vector<SharedPackingTable> tables,
                       size_t slot_count, size_t batch_max, unsigned thread_count)
      : engine_(engine),
        layout_(layout),
        tables_(std::move(tables)),
        threads_(thread_count),
        words_("words", slot_count, layout.row_count),
        keys_("packing keys", slot_count, PackingKeys::kWords),
        products_("products", batch_max, layout.column_count()),
        bodies_("packed responses", batch_max, tables_.size() * kDimension) {
    invariant(tables_.size() == layout.pack_count(), "a packing table for every pack");
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
    std::vector<std::vector<ResponsePacker::Task>> tasks(tables_.size());
    for (size_t p = 0; p < tables_.size(); ++p) {
      const size_t first = p * kDimension;
      const size_t count = std::min<size_t>(kDimension, layout_.column_count() - first);
      for (size_t i = 0; i < count_; ++i) {
        tasks[p].push_back({keys_[first_ + i].data(), products_[i].subspan(first, count),
                            bodies_[i].subspan(first).first<kDimension>()});
      }
    }
    threads_.run_each(tables_.size() * kSharesOfPack, [&](unsigned, size_t share) {
      const size_t p = share / kSharesOfPack;
      const size_t group = share % kSharesOfPack * kGroupsAtOnce;
      packer_.sum_groups(PackingTable(tables_[p].get(), kTableWords), tasks[p], group,
                         group + kGroupsAtOnce);
    });
    threads_.run_each(tables_.size() * count_, [&](unsigned, size_t one) {
      const size_t p = one / count_;
      const size_t i = one % count_;
      const ResponsePacker::Task& task = tasks[p][i];
      packer_.finish(task);
      for (size_t c = 0; c < task.words.size(); ++c) {
        products_[i][p * kDimension + c] =
            restore_word(ring::lower(task.body[c], layout_.response_bits), layout_.response_bits);
      }
    });
  }

  Engine& engine_;
  const Layout layout_;
  const std::vector<SharedPackingTable> tables_;
  const ResponsePacker packer_;
  WorkerThreads threads_;
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
