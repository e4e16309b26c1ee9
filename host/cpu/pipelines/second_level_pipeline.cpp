#include "host/cpu/pipelines/second_level_pipeline.h"

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/second_level_packer.h"
#include "host/cpu/pipelines/answer_pipeline.h"
#include "host/system/memory.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

using ring::kDimension;

class SecondLevelPipeline final : public AnswerPipeline {
 public:
  SecondLevelPipeline(std::unique_ptr<AnswerPipeline> first, const SecondLevelSpec& spec,
                      uint64_t word_count, size_t slot_count, unsigned thread_count)
      : first_(std::move(first)),
        spec_(spec),
        word_count_(word_count),
        rows_(spec.row_count),
        columns_(spec.column_count),
        packer_(spec.blocks, spec.key_order, {spec.key_masks.begin(), spec.key_masks.end()}),
        threads_(thread_count),
        keys_("packing keys", slot_count, PackingKeys::kWords),
        words_("numbers for rows", slot_count, rows_) {
    spec_.blocks = spec_.key_masks = {};  // the caller's
    for (unsigned i = 0; i < threads_.count(); ++i) {
      works_.push_back(std::make_unique<QueryWork>(packer_, uint64_t{rows_} * columns_));
    }
  }

  size_t depth() const override { return first_->depth(); }

  void put(size_t slot, std::span<const uint8_t> query) override {
    const auto first = query.first(query.size() - spec_.query_bytes());
    const auto second = query.last(spec_.query_bytes());
    first_->put(slot, first);
    const auto key =
        spec_.key_order > 0 ? second.first(ring::kKeyBytes) : first.last(ring::kKeyBytes);
    PackingKeys::unpack(key, keys_[slot].first<PackingKeys::kWords>());
    const uint32_t bits = spec_.query_bits;
    const std::span<uint32_t> words = words_[slot];
    read_bit_sequence(second.subspan(spec_.key_bytes()), bits, 0, words);
    for (uint32_t& word : words) word = ring::switch_to_q(word >> (32 - bits), bits);
  }

  void move(size_t from, size_t to) override {
    first_->move(from, to);
    std::ranges::copy(keys_[from], keys_[to].begin());
    std::ranges::copy(words_[from], words_[to].begin());
  }

  void begin(size_t first, size_t count) override {
    first_->begin(first, count);
    begun_.push_back({first, count});
  }

  std::span<const uint8_t> finish() override {
    const Begun oldest = begun_.front();
    begun_.pop_front();
    const std::span<const uint8_t> found = first_->finish();
    const uint64_t found_bytes = bit_sequence_bytes(word_count_, spec_.word_bits);
    const uint64_t bytes = spec_.response_bytes();
    responses_.resize(oldest.count * bytes);
    // A group of as many queries as there are threads is answered at a time. Its threads share the
    // steps that can be shared: a query alone has all threads for these.
    for (size_t first = 0; first < oldest.count; first += works_.size()) {
      const size_t count = std::min(works_.size(), oldest.count - first);
      for (size_t i = 0; i < count; ++i) {
        works_[i]->slot = oldest.first + first + i;
        works_[i]->response = std::span(responses_).subspan((first + i) * bytes, bytes);
      }
      threads_.run_each(count, [&](unsigned, size_t i) {
        read_entries(found.subspan((first + i) * found_bytes, found_bytes), *works_[i]);
      });
      answer(count);
    }
    return responses_;
  }

 private:
  struct Begun {
    size_t first;
    size_t count;
  };
  // The state of a query in progress.
  struct QueryWork {
    QueryWork(const SecondLevelPacker& packer, uint64_t entry_count)
        : memory(map_memory("entries of a second level", entry_count * sizeof(int32_t))),
          entries(static_cast<int32_t*>(memory.get()), entry_count),
          pack(packer) {}

    size_t slot = 0;
    std::span<uint8_t> response;
    // The entries are read by columns, and so need few pages.
    const std::shared_ptr<void> memory;
    const std::span<int32_t> entries;  // rows times columns
    SecondLevelPacker::Work pack;
    std::array<uint32_t, kDimension> mask;
    std::array<uint32_t, kPackColumns> body;
    std::vector<uint32_t> row;  // of the response
  };

  SecondLevelPacker::Task task_of(QueryWork& work, size_t column) const {
    return {keys_[work.slot].data(),
            words_[work.slot],
            work.entries.subspan(column),
            columns_,
            std::min<size_t>(kPackColumns, columns_ - column),
            work.mask,
            work.body};
  }

  // Answers the first `count` queries in progress.
  void answer(size_t count) {
    const uint64_t mask_bytes = bit_sequence_bytes(kDimension, spec_.mask_bits);
    for (size_t column = 0; column < columns_; column += kPackColumns) {
      const auto step = [&](size_t parts, auto run_part) {
        threads_.run_each(count * parts, [&](unsigned, size_t one) {
          QueryWork& work = *works_[one / parts];
          run_part(task_of(work, column), one % parts, work);
        });
      };
      using Task = SecondLevelPacker::Task;
      step(SecondLevelPacker::column_parts(task_of(*works_[0], column)),
           [&](const Task& task, size_t part, QueryWork& work) {
             packer_.make_columns(task, part, work.pack);
           });
      step(packer_.trace_parts(), [&](const Task& task, size_t part, QueryWork& work) {
        packer_.make_traces(task, part, work.pack);
      });
      step(1, [&](const Task& task, size_t, QueryWork& work) {
        packer_.switch_keys(task, work.pack);
        for (uint32_t& word : work.mask) word = lowered(word, spec_.mask_bits);
        const uint64_t mask_place = column / kPackColumns * mask_bytes;
        write_bit_sequence(work.mask, spec_.mask_bits,
                           work.response.subspan(mask_place, mask_bytes));
        work.row.resize(columns_);
        for (size_t k = 0; k < task.column_count; ++k) {
          work.row[column + k] = lowered(work.body[k], spec_.response_bits);
        }
      });
    }
    const uint64_t masks_bytes = (columns_ + kPackColumns - 1) / kPackColumns * mask_bytes;
    for (size_t i = 0; i < count; ++i) {
      write_bit_sequence(works_[i]->row, spec_.response_bits,
                         works_[i]->response.subspan(masks_bytes));
    }
  }

  // The first level's words, less half of all numbers. Words of shards that there are not are 0.
  void read_entries(std::span<const uint8_t> first, QueryWork& work) const {
    const uint32_t bits = spec_.word_bits;
    const auto entries = work.entries.first(word_count_);
    // There are many of them, so they become entries in the place where they are read to.
    read_bit_sequence(first, bits, 0,
                      {reinterpret_cast<uint32_t*>(entries.data()), entries.size()});
    for (int32_t& entry : entries) {
      const uint32_t word = static_cast<uint32_t>(entry) >> (32 - bits);
      entry = static_cast<int32_t>(word) - (1 << (bits - 1));
    }
    std::ranges::fill(work.entries.subspan(word_count_), 0);
  }

  static uint32_t lowered(uint32_t word, uint32_t bits) {
    return restore_word(ring::switch_from_q(word, bits), bits);
  }

  const std::unique_ptr<AnswerPipeline> first_;
  SecondLevelSpec spec_;  // without polynomials
  const uint64_t word_count_;
  const uint32_t rows_;
  const uint32_t columns_;
  const SecondLevelPacker packer_;
  WorkerThreads threads_;
  const SlotWords keys_;
  const SlotWords words_;
  std::vector<std::unique_ptr<QueryWork>> works_;  // one for each thread
  std::deque<Begun> begun_;
  std::vector<uint8_t> responses_;
};

}  // namespace

std::unique_ptr<AnswerPipeline> make_second_level_pipeline(std::unique_ptr<AnswerPipeline> first,
                                                           const SecondLevelSpec& spec,
                                                           uint64_t word_count, size_t slot_count,
                                                           unsigned thread_count) {
  return std::make_unique<SecondLevelPipeline>(std::move(first), spec, word_count, slot_count,
                                               thread_count);
}

}  // namespace blindfuse
