#include "host/cpu/pipelines/packed_answer_pipeline.h"

#include <algorithm>
#include <utility>

#include "host/cpu/packing/batch_packer.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/pipelines/answer_pipeline.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using ring::kDimension;

class CpuPackedAnswerPipeline final : public AnswerPipeline {
 public:
  CpuPackedAnswerPipeline(Engine& engine, WireBits bits, std::span<const SharedPackingTable> tables,
                          size_t slot_count, size_t batch_max, WorkerThreads& threads,
                          size_t bucket_count)
      : engine_(engine),
        bits_(bits),
        bucket_count_(bucket_count),
        words_bytes_(bit_sequence_bytes(bucket_count * engine.row_count(), bits.query)),
        pack_count_(tables.size()),
        threads_(threads),
        packer_({tables.begin(), tables.end()}, threads),
        words_("words", slot_count, bucket_count * engine.row_count()),
        keys_("packing keys", slot_count, PackingKeys::kWords),
        products_("products", batch_max, engine.column_count()),
        bodies_("packed responses", batch_max, pack_count_ * kDimension) {
    invariant(pack_count_ == (engine.column_count() + kPackColumns - 1) / kPackColumns,
              "a packing table for every pack");
    invariant(bucket_count > 0 && engine.column_count() % bucket_count == 0,
              "buckets have the same number of columns");
  }

  size_t depth() const override { return 1; }

  void put(size_t slot, std::span<const uint8_t> query) override {
    read_bit_sequence(query.first(words_bytes_), bits_.query, 0, words_[slot]);
    PackingKeys::unpack(query.subspan(words_bytes_), keys_[slot].first<PackingKeys::kWords>());
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
    const uint64_t columns = engine_.column_count();
    std::fill_n(products_[0].data(), count_ * columns, 0u);
    engine_.multiply_buckets({words_[first_].data(), count_, bucket_count_ * engine_.row_count()},
                             bucket_count_, {products_[0].data(), count_, columns});
    pack();
    const uint64_t response_bytes = bit_sequence_bytes(columns, bits_.response);
    responses_.resize(count_ * response_bytes);
    threads_.run_each(count_, [&](unsigned, size_t i) {
      write_bit_sequence(products_[i], bits_.response,
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
      const uint64_t pack = one / count_;
      const auto body = bodies_[i].subspan(pack * kDimension, kPackColumns);
      const auto words = products_[i].subspan(pack * kPackColumns);
      for (size_t c = 0; c < std::min(body.size(), words.size()); ++c) {
        words[c] = restore_word(ring::switch_from_q(body[c], bits_.response), bits_.response);
      }
    });
  }

  Engine& engine_;
  const WireBits bits_;
  const size_t bucket_count_;
  const uint64_t words_bytes_;  // of a query, before its packing keys
  const size_t pack_count_;
  WorkerThreads& threads_;
  BatchPacker packer_;
  const SlotWords words_;     // R for each bucket, for each slot
  const SlotWords keys_;      // PackingKeys::kWords for each slot
  const SlotWords products_;  // C for each query of a batch
  const SlotWords bodies_;    // 2048 for each pack, for each query of a batch
  std::vector<uint8_t> responses_;
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace

std::unique_ptr<AnswerPipeline> make_cpu_packed_answer_pipeline(
    Engine& engine, WireBits bits, std::span<const SharedPackingTable> tables, size_t slot_count,
    size_t batch_max, WorkerThreads& threads, size_t bucket_count) {
  return std::make_unique<CpuPackedAnswerPipeline>(engine, bits, tables, slot_count, batch_max,
                                                   threads, bucket_count);
}

}  // namespace blindfuse
