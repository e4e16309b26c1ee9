#include "host/server/batch_scheduler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <new>

#include "src/bit_packing.h"
#include "src/errors.h"

namespace blindfuse {
namespace {

// Not cleared: slots that are never used never become memory.
std::unique_ptr<uint32_t[]> allocate_words(uint64_t count, uint64_t words_each, const char* what) {
  try {
    return std::make_unique_for_overwrite<uint32_t[]>(count * words_each);
  } catch (const std::bad_alloc&) {
    throw EngineTrouble("no memory for the " + std::string(what) + " of " + std::to_string(count) +
                        " queries, " + std::to_string(count * words_each * sizeof(uint32_t)) +
                        " bytes; lower --queue-max or --batch-max");
  }
}

}  // namespace

BatchScheduler::BatchScheduler(Engine& engine, const Layout& layout, const BatchLimits& limits)
    : engine_(engine), layout_(layout), limits_(limits) {
  invariant(limits.batch_max >= 1 && limits.queue_max >= 1, "batches and the queue have room");
  // A full queue beside a full running batch.
  slots_.resize(limits.queue_max + limits.batch_max);
  words_ = allocate_words(slots_.size(), layout.row_count, "words");
  products_ = allocate_words(limits.batch_max, layout.column_count(), "products");
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
    unpack_restored(queries.subspan(i * query_bytes, query_bytes), layout_.query_bits, 0,
                    {words_.get() + slot * layout_.row_count, layout_.row_count});
    const std::lock_guard lock(mutex_);
    slots_[slot].unpacked = true;
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
    changed_.wait(lock, [this] { return batch_at_head() > 0 || (stopping_ && claimed_ == 0); });
    const size_t count = batch_at_head();
    if (count == 0) return;
    running_ = count;
    lock.unlock();
    const std::string failure = run_batch(count);
    lock.lock();
    finish_batch(count, failure);
  }
}

// How many queries the engine can take now. They must be neighbours in memory, so a batch ends
// where the ring does.
size_t BatchScheduler::batch_at_head() const {
  const size_t most = std::min({claimed_, limits_.batch_max, slots_.size() - head_});
  size_t count = 0;
  while (count < most && slots_[head_ + count].unpacked) ++count;
  return count;
}

// Computes the responses of the slots at the head, which nobody else touches meanwhile. Returns
// what failed, if something.
std::string BatchScheduler::run_batch(size_t count) {
  const uint64_t rows = layout_.row_count;
  const uint64_t columns = layout_.column_count();
  const uint64_t response_bytes = layout_.response_bytes();
  try {
    std::fill_n(products_.get(), count * columns, 0u);
    engine_.multiply({words_.get() + head_ * rows, count, rows}, {0, rows},
                     {products_.get(), count, columns});
  } catch (const std::exception& error) {
    spdlog::error("the engine failed in a batch of {}: {}", count, error.what());
    return "the engine failed in the batch of these queries";
  }
  for (size_t i = 0; i < count; ++i) {
    const Slot& slot = slots_[head_ + i];
    auto* responses = reinterpret_cast<uint8_t*>(slot.waiting->responses.data());
    pack_rounded({products_.get() + i * columns, columns}, layout_.response_bits,
                 {responses + slot.index * response_bytes, response_bytes});
  }
  return "";
}

void BatchScheduler::finish_batch(size_t count, const std::string& failure) {
  for (size_t i = 0; i < count; ++i) {
    Waiting& waiting = *slots_[head_ + i].waiting;
    slots_[head_ + i] = {};
    if (!failure.empty()) waiting.failure = failure;
    // Notified under the lock: the caller's stack is gone as soon as it can see that nothing is
    // left.
    if (--waiting.left == 0) waiting.done.notify_one();
  }
  running_ = 0;
  claimed_ -= count;
  // Starting over when nothing waits keeps a quiet server in the same few slots.
  head_ = claimed_ == 0 ? 0 : slot_after(head_, count);
}

}  // namespace blindfuse
