#include "cuda/pipelines/answer_pipeline.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/device/check.h"
#include "cuda/device/launch_trail.h"
#include "cuda/device/memory.h"
#include "cuda/pipelines/batch_lane.h"
#include "cuda/pipelines/batch_sizes.h"
#include "cuda/pipelines/canary_check.h"
#include "cuda/pipelines/product_blame.h"
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
        batch_max_(batch_max),
        sizes_(responder_->shape(), batch_max),
        canary_bytes_(bit_sequence_bytes(columns_, bits.response)),
        response_bytes_(second_ ? second_->response_bytes() : canary_bytes_),
        slots_(slot_count * sizes_.slot_words) {
    invariant(columns_ % bucket_count_ == 0, "buckets have the same number of columns");
    invariant(bucket_count_ == 1 || rows_ * bits.query % 32 == 0,
              "a bucket's words of a query begin at a word of 32 bits");
    std::ranges::fill(slots_.span(), 0u);
    for (BatchLane& lane : lanes_) {
      lane.allocate(sizes_, batch_max, response_bytes_, second_ ? canary_bytes_ : 0);
    }
    limb_pitch_ = matrix.pitch();
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  size_t depth() const override { return kLanes; }

  void put(size_t slot, std::span<const uint8_t> query) override {
    put_at(slots_.data() + slot * sizes_.slot_words, query);
  }

  void move(size_t from, size_t to) override {
    const uint64_t words = sizes_.slot_words;
    std::copy_n(slots_.data() + from * words, words, slots_.data() + to * words);
  }

  void begin(size_t first, size_t count) override {
    matrix_.use_device();
    require_parts();
    is_proved_ = true;
    const auto queries = static_cast<uint32_t>(count);
    const Scanner::Choice choice = scanner_.choose(queries);
    const bool has_canary = canary_ && rides_along(choice.kernel, queries);
    if (canary_ && !has_canary && canary_->is_due(choice.kernel, queries)) compute_canary(queries);
    BatchLane& lane = lanes_[next_];
    note(lane, "a batch of " + std::to_string(count) + " queries" +
                   (has_canary ? " and the server's own" : ""));
    BLINDFUSE_CUDA(cudaMemcpyAsync(lane.queries.data(), slots_.data() + first * sizes_.slot_words,
                                   count * sizes_.slot_words * sizeof(uint32_t),
                                   cudaMemcpyHostToDevice, lane.stream.get()));
    const uint32_t place = has_canary ? canary_->next_place(queries + 1) : queries;
    if (has_canary) {
      // The query that was there comes last.
      if (place != queries)
        copy_query(lane, lane.queries.data() + place * sizes_.slot_words, queries);
      put_canary(lane, place);
    }
    start(next_, choice, queries + (has_canary ? 1 : 0),
          has_canary ? std::optional(place) : std::nullopt);
    if (second_) {
      if (has_canary) spoil_second_level(next_, place);
      start_second(next_, 0, queries + (has_canary ? 1 : 0));
    }
    lane.done.record(lane.stream);
    begun_.push_back({next_, count, choice.kernel, has_canary, place});
    next_ = (next_ + 1) % kLanes;
  }

  std::span<const uint8_t> finish() override {
    const Begun oldest = begun_.front();
    begun_.pop_front();
    matrix_.use_device();
    const BatchLane& lane = lanes_[oldest.lane];
    lane.done.wait();
    const auto count = static_cast<uint32_t>(oldest.count);
    const uint32_t queries = count + (oldest.has_canary ? 1 : 0);
    if (oldest.has_canary) {
      judge_canary(lane, oldest.kernel, oldest.canary_place, queries);
      judge_second_level(lane, oldest.canary_place, queries);
    }
    judge_products(lane, oldest.kernel, queries);
    if (oldest.has_canary && oldest.canary_place != oldest.count) {
      std::ranges::copy(response(lane, oldest.count), response(lane, oldest.canary_place).begin());
    }
    require_parts();
    if (canary_) canary_->require_fit(oldest.kernel);
    return {lane.finished.data(), oldest.count * response_bytes_};
  }

  void set_canary(const Canary& canary, std::chrono::milliseconds interval) override {
    invariant(canary.bucket_count == bucket_count_ &&
                  canary.query.size() ==
                      sizes_.query_bytes + responder_->shape().extra_words * sizeof(uint32_t) &&
                  canary.products.size() == columns_ && canary.response.size() == canary_bytes_,
              "a canary of this matrix, complete");
    invariant(canary.second_response.empty() ||
                  (second_ && canary.second_query.size() == second_->query_bytes() &&
                   canary.second_response.size() == response_bytes_),
              "a canary of this second level, complete");
    matrix_.use_device();
    std::vector<uint32_t> slot(sizes_.slot_words);
    std::vector<uint8_t> query = canary.query;
    query.insert(query.end(), canary.second_query.begin(), canary.second_query.end());
    put_at(slot.data(), query);
    canary_.emplace(canary, slot, scanner_, interval);
  }

  void check() override {
    if (!canary_) return;
    matrix_.use_device();
    require_parts();
    for (bool is_over = false; !is_over;) {
      try {
        check_those_due();
        is_over = true;
      } catch (const KernelReplacedError&) {
        // The record has it, and there is one kernel less.
      }
    }
    is_proved_ = true;
  }

 private:
  // What nothing takes the place of, whichever pipeline found it wrong: batches that have begun are
  // withheld, too, as are those that still wait when a server ends for it.
  void require_parts() const {
    for (const std::string_view part : {responder_->kernel(), Scanner::kWeighing}) {
      const auto why = scanner_.record().why_unfit(part);
      if (!why) continue;
      throw DeviceLostError("the GPU's " + std::string(part) + " has been found wrong: " + *why +
                            "; the responses of this batch are withheld");
    }
  }

  // The kernel for one query, and that for many.
  void check_those_due() {
    const auto most = static_cast<uint32_t>(batch_max_);
    const Scanner::Kernel few = scanner_.choose(1).kernel;
    if (canary_->is_due(few, 1)) compute_canary(1);
    const Scanner::Kernel many = scanner_.choose(most).kernel;
    if (many != few && canary_->is_due(many, most)) compute_canary(most);
  }

  struct Begun {
    size_t lane;
    size_t count;  // without the canary
    Scanner::Kernel kernel;
    bool has_canary;
    uint32_t canary_place;  // the query that would have it comes last, after the others
  };

  void put_at(uint32_t* slot, std::span<const uint8_t> query) const {
    std::ranges::copy(query.first(sizes_.query_bytes), reinterpret_cast<uint8_t*>(slot));
    std::ranges::copy(query.subspan(sizes_.query_bytes),
                      reinterpret_cast<uint8_t*>(slot + sizes_.extras_at));
  }

  // The following work in the lane belongs to this, of the one matrix.
  void note(const BatchLane& lane, const std::string& what) const {
    launch_trail::note(lane.stream.get(), what + " of " + std::to_string(rows_) + " rows and " +
                                              std::to_string(columns_) + " columns");
  }

  // Whether one query more costs the batch nothing.
  bool rides_along(Scanner::Kernel kernel, uint32_t queries) const {
    return queries < batch_max_ && queries < room_of(kernel, queries) &&
           scanner_.choose(queries + 1).kernel == kernel;
  }

  std::span<uint8_t> response(const BatchLane& lane, size_t place) const {
    return {lane.finished.data() + place * response_bytes_, response_bytes_};
  }

  // Of the canary, which is at a place.
  std::span<uint8_t> canary_response(const BatchLane& lane, size_t place) const {
    if (!second_) return response(lane, place);
    return {lane.canary_response.data(), canary_bytes_};
  }

  // From the device's memory to a place in the batch.
  void copy_query(const BatchLane& lane, const uint32_t* query, uint32_t place) const {
    BLINDFUSE_CUDA(cudaMemcpyAsync(lane.queries.data() + place * sizes_.slot_words, query,
                                   sizes_.slot_words * sizeof(uint32_t), cudaMemcpyDeviceToDevice,
                                   lane.stream.get()));
  }

  // A rest of the response before would be right, on the device and in the host's memory: it is
  // overwritten first.
  void put_canary(const BatchLane& lane, uint32_t place) const {
    const uint64_t response_words = sizes_.response_words;
    canary_->spoil(canary_response(lane, place));
    BLINDFUSE_CUDA(cudaMemsetAsync(lane.responses.data() + place * response_words, 0xff,
                                   response_words * sizeof(uint32_t), lane.stream.get()));
    copy_query(lane, canary_->query(), place);
  }

  // The same for the second level's, where it is checked.
  void spoil_second_level(size_t number, uint32_t place) const {
    if (!canary_->has_second_level()) return;
    const BatchLane& lane = lanes_[number];
    canary_->spoil_second(response(lane, place));
    second_->spoil(number, place, lane.stream.get());
  }

  // From the lane's queries to responses in the host's memory; with a second level, to those of the
  // first one on the device, and the canary's.
  void start(size_t number, Scanner::Choice choice, uint32_t queries,
             std::optional<uint32_t> canary_place) {
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
      // A value that does not arrive here is not right.
      std::fill_n(lane.differences.data(), queries, ~uint32_t{0});
      check->start_compare(lane.products, lane.sums, queries, lane.differences.data(), stream);
    }
    responder_->start(
        number,
        {queries, choice.kernel, lane.products, columns_, lane.queries.data() + sizes_.extras_at,
         sizes_.slot_words, lane.responses.data()},
        stream);
    if (!second_) {
      lane.finish(lane.responses.data(), sizes_.response_words, response_bytes_, queries);
    } else if (canary_place) {
      BLINDFUSE_CUDA(cudaMemcpyAsync(lane.canary_response.data(),
                                     lane.responses.data() + *canary_place * sizes_.response_words,
                                     canary_bytes_, cudaMemcpyDeviceToHost, stream));
    }
  }

  // From the first level's responses, from place `first` on, to those of the second level, which
  // are the first ones in the host's memory.
  void start_second(size_t number, uint32_t first, uint32_t queries) {
    const BatchLane& lane = lanes_[number];
    second_->start(
        number,
        {queries, lane.responses.data() + first * sizes_.response_words, sizes_.response_words,
         columns_, lane.queries.data() + first * sizes_.slot_words + sizes_.extras_at,
         sizes_.slot_words},
        lane.stream.get());
    lane.finish(second_->responses(number), second_->response_pitch(), response_bytes_, queries);
  }

  // A batch of this many queries, of which the canary is one and the others are whatever the lane
  // has: by the same kernel and tile as a batch of clients' queries that has no room for it. The
  // second level is then the canary's alone.
  void compute_canary(uint32_t queries) {
    BatchLane& lane = lanes_[next_];
    const Scanner::Choice choice = scanner_.choose(queries);
    note(lane, "the server's own query in a batch of " + std::to_string(queries));
    const uint32_t place = canary_->next_place(queries);
    put_canary(lane, place);
    start(next_, choice, queries, place);
    if (canary_->has_second_level()) {
      spoil_second_level(next_, 0);
      start_second(next_, place, 1);
    }
    lane.done.record(lane.stream);
    lane.done.wait();
    judge_canary(lane, choice.kernel, place, queries);
    judge_second_level(lane, 0, queries);
    judge_products(lane, choice.kernel, queries);
  }

  void judge_canary(const BatchLane& lane, Scanner::Kernel kernel, uint32_t place,
                    uint32_t queries) {
    if (canary_->is_right(canary_response(lane, place)))
      return canary_->note_right(kernel, queries);
    canary_->blame(kernel, responder_->kernel(), queries, products_of(lane, place), is_proved_);
  }

  // Of a canary whose first level was right. place: of its response among those that leave.
  void judge_second_level(const BatchLane& lane, size_t place, uint32_t queries) {
    if (!canary_->has_second_level() || canary_->is_second_right(response(lane, place))) return;
    canary_->blame_second(responder_->kernel(), queries, is_proved_);
  }

  // Of all queries of a batch: of those that do not agree with their products, the first one's
  // products say whether the scan or the check is wrong.
  void judge_products(const BatchLane& lane, Scanner::Kernel kernel, uint32_t queries) {
    if (scanner_.check_vector() == nullptr) return;
    const std::span<const uint32_t> differences = lane.differences.span().first(queries);
    const auto is_wrong = [](uint32_t difference) { return difference != 0; };
    const auto first = std::ranges::find_if(differences, is_wrong);
    if (first == differences.end()) {
      scanner_.record().note_passed(name_of(kernel), CheckStage::kProduct);
      return;
    }
    const auto query = static_cast<uint32_t>(first - differences.begin());
    const std::vector<uint32_t> products = products_of(lane, query);
    const uint32_t sum =
        lane.words(lane.sums + query, 1).front() - scanner_.check_vector()->cut_warps();
    if (canary_) canary_->make_all_due();
    blame_products(scanner_, kernel,
                   {queries, static_cast<uint32_t>(std::ranges::count_if(differences, is_wrong)),
                    query, products, sum});
  }

  std::vector<uint32_t> products_of(const BatchLane& lane, uint32_t place) const {
    return lane.words(lane.products + place * columns_, columns_);
  }

  Scanner& scanner_;
  const DeviceMatrix& matrix_;
  const WireBits bits_;
  const uint64_t rows_;
  const uint64_t columns_;
  const std::unique_ptr<Responder> responder_;
  const size_t bucket_count_;
  const std::unique_ptr<const DeviceSecondLevel> second_;  // or none
  const size_t batch_max_;
  const BatchSizes sizes_;
  const uint64_t canary_bytes_;    // of the first level's response
  const uint64_t response_bytes_;  // of one that leaves
  uint64_t limb_pitch_ = 0;
  PinnedMemory<uint32_t> slots_;
  std::optional<CanaryCheck> canary_;
  bool is_proved_ = false;   // as CanaryCheck::blame() has it
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
