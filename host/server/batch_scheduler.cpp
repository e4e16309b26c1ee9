#include "host/server/batch_scheduler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "host/server/host_answer_pipeline.h"
#include "src/errors.h"

namespace blindfuse {

BatchScheduler::BatchScheduler(Engine& engine, const Layout& layout, const BatchLimits& limits,
                               FailureCallback on_failure)
    : layout_(layout), limits_(limits), on_failure_(std::move(on_failure)) {
  invariant(limits.batch_max >= 1 && limits.queue_max >= 1, "batches and the queue have room");
  // A full queue beside full batches in the engine.
  slots_.resize(limits.queue_max + AnswerPipeline::kDepthMax * limits.batch_max);
  const WireBits bits{layout.query_bits, layout.response_bits};
  pipeline_ = engine.make_answer_pipeline(bits, slots_.size(), limits.batch_max);
  if (!pipeline_) {
    pipeline_ = make_host_answer_pipeline(engine, bits, slots_.size(), limits.batch_max);
  }
  worker_ = std::thread([this] { work(); });
}

BatchScheduler::~BatchScheduler() { stop(); }

void BatchScheduler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
}

size_t BatchScheduler::waiting_count() const {
  const std::lock_guard lock(mutex_);
  return claimed_ - running_;
}

std::string BatchScheduler::answer(std::span<const uint8_t> queries) {
  const uint64_t query_bytes = layout_.query_bytes();
  const size_t count = queries.size() / query_bytes;
  invariant(count >= 1 && queries.size() == count * query_bytes, "whole queries, at least one");
  Waiting waiting;
  waiting.responses.resize(count * layout_.response_bytes());
  const size_t first = claim_slots(waiting, count);
  for (size_t i = 0; i < count; ++i) {
    const size_t slot = slot_after(first, i);
    pipeline_->put(slot, queries.subspan(i * query_bytes, query_bytes));
    const std::lock_guard lock(mutex_);
    slots_[slot].filled = true;
    changed_.notify_one();
  }
  std::unique_lock lock(mutex_);
  waiting.done.wait(lock, [&] { return waiting.left == 0; });
  if (!waiting.failure.empty()) throw EngineTrouble(waiting.failure);
  return std::move(waiting.responses);
}

// The first of `count` slots for one call, one after another in the ring.
size_t BatchScheduler::claim_slots(Waiting& waiting, size_t count) {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw SchedulerStopped("this server takes no more queries");
  if (claimed_ - running_ + count > limits_.queue_max) {
    throw QueueFull("the queue is full: " + std::to_string(limits_.queue_max) +
                    " queries may wait");
  }
  const size_t first = slot_after(head_, claimed_);
  for (size_t i = 0; i < count; ++i) slots_[slot_after(first, i)] = {&waiting, i, false};
  waiting.left = count;
  claimed_ += count;
  return first;
}

void BatchScheduler::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (batches_.empty()) {
      changed_.wait(lock, [this] { return next_batch() > 0 || (stopping_ && claimed_ == 0); });
      if (next_batch() == 0) return;
    }
    // Beside another batch only a full one begins: whoever waits for that one's end will not be
    // alone, and a batch takes about the same time however many are in it.
    const size_t least = batches_.empty() ? 1 : limits_.batch_max;
    const size_t count = next_batch();
    if (batches_.size() < pipeline_->depth() && count >= least) {
      begin_batch(lock, count);
    } else {
      finish_batch(lock);
    }
  }
}

// How many queries the engine can take now. They must be neighbours in memory, so a batch ends
// where the ring does.
size_t BatchScheduler::next_batch() const {
  const size_t first = slot_after(head_, running_);
  const size_t most = std::min({claimed_ - running_, limits_.batch_max, slots_.size() - first});
  size_t count = 0;
  while (count < most && slots_[first + count].filled) ++count;
  return count;
}

// Hands the engine the slots behind those that it has, which nobody else touches until they are
// free.
void BatchScheduler::begin_batch(std::unique_lock<std::mutex>& lock, size_t count) {
  const size_t first = slot_after(head_, running_);
  running_ += count;
  Batch& batch = batches_.emplace_back(Batch{count, ""});
  lock.unlock();
  try {
    pipeline_->begin(first, count);
  } catch (const std::exception& error) {
    batch.failure = describe_failure(error, count);
  }
  lock.lock();
}

// Takes the responses of the oldest batch to those who wait for them, and frees its slots.
void BatchScheduler::finish_batch(std::unique_lock<std::mutex>& lock) {
  Batch& batch = batches_.front();
  lock.unlock();
  try {
    if (batch.failure.empty()) hand_out(pipeline_->finish(), batch.count);
  } catch (const std::exception& error) {
    batch.failure = describe_failure(error, batch.count);
  }
  lock.lock();
  for (size_t i = 0; i < batch.count; ++i) {
    Slot& slot = slots_[slot_after(head_, i)];
    Waiting& waiting = *slot.waiting;
    slot = {};
    if (!batch.failure.empty()) waiting.failure = batch.failure;
    // Notified under the lock: the caller's stack is gone as soon as it can see that nothing is
    // left.
    if (--waiting.left == 0) waiting.done.notify_one();
  }
  running_ -= batch.count;
  claimed_ -= batch.count;
  // Starting over when nothing waits keeps a quiet server in the same few slots.
  head_ = claimed_ == 0 ? 0 : slot_after(head_, batch.count);
  batches_.pop_front();
}

void BatchScheduler::hand_out(std::span<const uint8_t> responses, size_t count) const {
  const uint64_t response_bytes = layout_.response_bytes();
  for (size_t i = 0; i < count; ++i) {
    const Slot& slot = slots_[slot_after(head_, i)];
    std::copy_n(
        responses.begin() + static_cast<ptrdiff_t>(i * response_bytes), response_bytes,
        slot.waiting->responses.begin() + static_cast<ptrdiff_t>(slot.index * response_bytes));
  }
}

// What those who wait are told; the log and on_failure_ get all of it.
std::string BatchScheduler::describe_failure(const std::exception& error, size_t count) const {
  spdlog::error("the engine failed in a batch of {}: {}", count, error.what());
  if (on_failure_) on_failure_(error);
  return "the engine failed in the batch of these queries";
}

}  // namespace blindfuse
