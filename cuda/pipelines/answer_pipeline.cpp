#include "cuda/pipelines/answer_pipeline.h"

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <utility>

#include "cuda/device/check.h"
#include "cuda/device/device_loss.h"
#include "cuda/device/memory.h"
#include "cuda/pipelines/batch_lane.h"
#include "cuda/pipelines/batch_sizes.h"
#include "cuda/scan/scan_kernels.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

class DeviceAnswerPipeline final : public AnswerPipeline {
 public:
  DeviceAnswerPipeline(Scanner& scanner, const DeviceMatrix& matrix, WireBits bits,
                       size_t slot_count, size_t batch_max, std::unique_ptr<Responder> responder,
                       std::unique_ptr<DeviceSecondLevel> second)
      : scanner_(scanner),
        matrix_(matrix),
        bits_(bits),
        rows_(matrix.row_count()),
        columns_(matrix.column_count()),
        responder_(std::move(responder)),
        bucket_count_(responder_->shape().bucket_count),
        second_(std::move(second)),
        sizes_(responder_->shape(), batch_max),
        response_bytes_(second_ ? second_->response_bytes()
                                : bit_sequence_bytes(columns_, bits.response)),
        slots_(slot_count * sizes_.slot_words) {
    invariant(columns_ % bucket_count_ == 0, "buckets have the same number of columns");
    invariant(bucket_count_ == 1 || rows_ * bits.query % 32 == 0,
              "a bucket's words of a query begin at a word of 32 bits");
    std::ranges::fill(slots_.span(), 0u);
    for (BatchLane& lane : lanes_) {
      lane.allocate(sizes_, batch_max, response_bytes_);
    }
    limb_pitch_ = matrix.pitch();
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  size_t depth() const override { return kLanes; }

  void put(size_t slot, std::span<const uint8_t> query) override {
    uint32_t* const words = slots_.data() + slot * sizes_.slot_words;
    std::ranges::copy(query.first(sizes_.query_bytes), reinterpret_cast<uint8_t*>(words));
    std::ranges::copy(query.subspan(sizes_.query_bytes),
                      reinterpret_cast<uint8_t*>(words + sizes_.extras_at));
  }

  void move(size_t from, size_t to) override {
    const uint64_t words = sizes_.slot_words;
    std::copy_n(slots_.data() + from * words, words, slots_.data() + to * words);
  }

  void begin(size_t first, size_t count) override {
    matrix_.use_device();
    require_device();
    const auto queries = static_cast<uint32_t>(count);
    const Scanner::Choice choice = scanner_.choose(queries);
    BatchLane& lane = lanes_[next_];
    BLINDFUSE_CUDA(cudaMemcpyAsync(lane.queries.data(), slots_.data() + first * sizes_.slot_words,
                                   count * sizes_.slot_words * sizeof(uint32_t),
                                   cudaMemcpyHostToDevice, lane.stream.get()));
    start(next_, choice, queries);
    lane.done.record(lane.stream);
    begun_.push_back({next_, queries, choice.kernel});
    next_ = (next_ + 1) % kLanes;
  }

  std::span<const uint8_t> finish() override {
    const Begun oldest = begun_.front();
    begun_.pop_front();
    matrix_.use_device();
    lanes_[oldest.lane].done.wait();
    require_right(oldest);
    require_device();
    return {lanes_[oldest.lane].finished.data(), oldest.count * response_bytes_};
  }

  [[noreturn]] void lose_device(const std::string& why) override { blindfuse::lose_device(why); }

 private:
  struct Begun {
    size_t lane;
    uint32_t count;
    Scanner::Kernel kernel;
  };

  // Computes responses in the host's memory from the lane's queries.
  void start(size_t number, Scanner::Choice choice, uint32_t queries) {
    BatchLane& lane = lanes_[number];
    const cudaStream_t stream = lane.stream.get();
    const Limbs limbs{lane.limbs.data(), limb_pitch_, choice.order};
    const CheckVector* const check = scanner_.check_vector();
    BLINDFUSE_CUDA(cudaMemsetAsync(lane.sums, 0,
                                   (sizes_.sums + queries * columns_) * sizeof(uint32_t), stream));
    invariant(check == nullptr || check->bucket_count() == bucket_count_,
              "products are checked by buckets");
    const uint64_t bucket_words = rows_ * bits_.query / 32;
    const uint64_t bucket_columns = columns_ / bucket_count_;
    for (size_t bucket = 0; bucket < bucket_count_; ++bucket) {
      start_cut(BitSequences{lane.queries.data() + bucket * bucket_words, sizes_.slot_words,
                             bits_.query, rows_},
                queries, limbs,
                check == nullptr ? QuerySums{} : check->query_sums(lane.sums, bucket), stream);
      const ColumnRange range{bucket * bucket_columns, bucket_columns};
      scanner_.start_columns(choice, limbs, queries, {0, rows_}, range,
                             {lane.products + range.first, columns_}, stream);
    }
    if (check != nullptr) {
      // The values are wrong unless the device writes them.
      std::fill_n(lane.differences.data(), queries, ~uint32_t{0});
      check->start_compare(lane.products, lane.sums, queries, lane.differences.data(), stream);
    }
    responder_->start(
        number,
        {queries, choice.kernel, lane.products, columns_, lane.queries.data() + sizes_.extras_at,
         sizes_.slot_words, lane.responses.data()},
        stream);
    if (!second_) {
      return lane.finish(lane.responses.data(), sizes_.response_words, response_bytes_, queries);
    }
    second_->start(number,
                   {queries, lane.responses.data(), sizes_.response_words, columns_,
                    lane.queries.data() + sizes_.extras_at, sizes_.slot_words},
                   stream);
    lane.finish(second_->responses(number), second_->response_pitch(), response_bytes_, queries);
  }

  // Throws DeviceLostError unless all products of the batch agree with their queries.
  void require_right(const Begun& batch) const {
    if (scanner_.check_vector() == nullptr) return;
    const auto differences = lanes_[batch.lane].differences.span().first(batch.count);
    const auto is_wrong = [](uint32_t difference) { return difference != 0; };
    const auto first = std::ranges::find_if(differences, is_wrong);
    if (first == differences.end()) return;
    blindfuse::lose_device("the kernel " + std::string(name_of(batch.kernel)) +
                           " is wrong, or the one that checks it: the products of " +
                           std::to_string(std::ranges::count_if(differences, is_wrong)) + " of " +
                           std::to_string(batch.count) + " queries with the " + matrix_.shape() +
                           " are not those of their words, the first query " +
                           std::to_string(first - differences.begin()));
  }

  Scanner& scanner_;
  const DeviceMatrix& matrix_;
  const WireBits bits_;
  const uint64_t rows_;
  const uint64_t columns_;
  const std::unique_ptr<Responder> responder_;
  const size_t bucket_count_;
  const std::unique_ptr<const DeviceSecondLevel> second_;  // or none
  const BatchSizes sizes_;
  const uint64_t response_bytes_;  // of one that leaves
  uint64_t limb_pitch_ = 0;
  PinnedMemory<uint32_t> slots_;
  BatchLane lanes_[kLanes];  // after all that their streams use
  size_t next_ = 0;
  std::deque<Begun> begun_;
};

}  // namespace

std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(Scanner& scanner,
                                                            const DeviceMatrix& matrix,
                                                            WireBits bits, size_t slot_count,
                                                            size_t batch_max) {
  const BatchShape shape =
      hint_shape(matrix.row_count(), matrix.column_count(), bits.query, bits.response);
  const uint64_t bytes = BatchSizes(shape, batch_max).device_bytes();
  const std::string what = "two batches of up to " + std::to_string(batch_max) + " queries";
  require_room(bytes, what.c_str(), "lower --batch-max, or serve with --engine cpu");
  return make_device_answer_pipeline(scanner, matrix, bits, slot_count, batch_max,
                                     make_rounder(shape, bits.response));
}

std::unique_ptr<AnswerPipeline> make_device_answer_pipeline(
    Scanner& scanner, const DeviceMatrix& matrix, WireBits bits, size_t slot_count,
    size_t batch_max, std::unique_ptr<Responder> responder,
    std::unique_ptr<DeviceSecondLevel> second) {
  try {
    return std::make_unique<DeviceAnswerPipeline>(scanner, matrix, bits, slot_count, batch_max,
                                                  std::move(responder), std::move(second));
  } catch (const DeviceLostError&) {
    throw;
  } catch (const ResourceError& error) {
    throw ResourceError("no room for " + std::to_string(slot_count) +
                        " waiting queries in the host's memory and " +
                        std::to_string(kLanes * batch_max) +
                        " in the device's; lower --queue-max or --batch-max: " + error.what());
  }
}

}  // namespace blindfuse
