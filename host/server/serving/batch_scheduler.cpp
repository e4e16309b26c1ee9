#include "host/server/serving/batch_scheduler.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "src/arithmetic/second_level_spec.h"
#include "src/base/errors.h"
#include "src/program/log.h"
#include "src/protocol/public_polynomials.h"
#include "src/system/threads.h"

namespace blindfuse {
namespace {

constexpr std::chrono::minutes kQuotaWindow{1};

std::unique_ptr<AnswerPipeline> make_pipeline(Engine& engine, const Layout& layout,
                                              const BatchLimits& limits, size_t slot_count,
                                              const std::vector<SharedPackingTable>& tables,
                                              const ring::PublicPolynomials* polynomials) {
  const WireBits bits{layout.query_bits, layout.response_bits};
  if (layout.second) {
    invariant(polynomials != nullptr, "a second level has public polynomials");
    const SecondLevelPolynomials second(layout, *polynomials);
    const SecondLevelSpec spec = second.spec(layout);
    return engine.make_packed_answer_pipeline(bits, tables, slot_count, limits.batch_max, &spec);
  }
  if (layout.mode() == Mode::kPacked) {
    return engine.make_packed_answer_pipeline(bits, tables, slot_count, limits.batch_max, nullptr,
                                              layout.bucket_count());
  }
  return engine.make_answer_pipeline(bits, slot_count, limits.batch_max);
}

}  // namespace

BatchScheduler::BatchScheduler(Engine& engine, const Layout& layout, const BatchLimits& limits,
                               BatchObserver* observer,
                               const std::vector<SharedPackingTable>& tables, const Canary* canary,
                               const ring::PublicPolynomials* polynomials)
    : layout_(layout), limits_(limits), observer_(observer), canary_(canary) {
  invariant(limits.batch_max >= 1 && limits.queue_max >= 1, "batches and the queue have room");
  // The slots are those of a full queue and of full batches in the engine.
  slots_.resize(limits.queue_max + AnswerPipeline::kDepthMax * limits.batch_max);
  batches_.reserve(AnswerPipeline::kDepthMax);
  constexpr size_t kMovesEach = 4;  // three to take its turn, and one to the front
  sorted_.moves.reserve(kMovesEach * limits.batch_max);
  sorted_.expired.reserve(slots_.size());
  turns_.reserve(slots_.size());
  done_.reserve(limits.batch_max);
  // There is one more slot, through which two slots exchange their queries, and those of the
  // canaries.
  const size_t canary_slots = canary == nullptr ? 0 : limits.batch_max + 1;
  pipeline_ =
      make_pipeline(engine, layout, limits, slots_.size() + 1 + canary_slots, tables, polynomials);
  if (canary != nullptr) check_first();
  worker_ = start_thread([this] { work(); });
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

size_t BatchScheduler::client_count() const {
  const std::lock_guard lock(mutex_);
  return clients_.size();
}

std::shared_ptr<PendingAnswer> BatchScheduler::ask(std::span<const uint8_t> queries,
                                                   Clock::time_point deadline,
                                                   std::function<void()> on_done,
                                                   std::string_view client) {
  const uint64_t query_bytes = layout_.query_bytes();
  const size_t count = queries.size() / query_bytes;
  invariant(count >= 1 && queries.size() == count * query_bytes, "whole queries, at least one");
  auto answer = std::make_shared<PendingAnswer>(count, deadline, std::move(on_done));
  const size_t first = claim_slots(answer, count, client);
  size_t done = 0;
  try {
    // Memory for responses is taken after the queue has room: a refused request costs none.
    answer->responses_.resize(count * layout_.response_bytes());
    for (; done < count; ++done) {
      const size_t slot = slot_after(first, done);
      pipeline_->put(slot, queries.subspan(done * query_bytes, query_bytes));
      mark_filled(slot);
    }
  } catch (...) {
    // Other queries wait after these slots, which the worker passes over once they count as filled.
    answer->abandon();
    for (; done < count; ++done) mark_filled(slot_after(first, done));
    throw;
  }
  return answer;
}

void BatchScheduler::mark_filled(size_t slot) {
  const std::lock_guard lock(mutex_);
  slots_[slot].filled = true;
  changed_.notify_one();
}

void BatchScheduler::check_room(size_t count, std::string_view client) const {
  const std::lock_guard lock(mutex_);
  require_room(count, client);
}

// The caller holds the lock.
void BatchScheduler::require_room(size_t count, std::string_view client) const {
  if (stopping_) throw SchedulerStopped("this server takes no more queries");
  const auto known = clients_.find(client);
  if (known != clients_.end()) require_quota(count, known->second);
  // A query that batches pass over, because its client has gone, keeps its slots as long as they
  // do: there may be more of these than there are slots besides those of the queue.
  const size_t waiting = claimed_ - running_;
  if (waiting + count > limits_.queue_max || claimed_ + count > slots_.size()) {
    throw QueueFull("the queue is full: " + std::to_string(limits_.queue_max) +
                    " queries may wait");
  }
  if (known == clients_.end() || known->second.waiting == 0) return;
  // n such clients thus leave one part in n + 1 of the queue to others.
  if (known->second.waiting + count > limits_.queue_max - waiting) {
    throw QueueFull("the queue has no more room for this client: " +
                    std::to_string(known->second.waiting) + " of its queries wait");
  }
}

// The time in which a client's token bucket gets this many queries.
BatchScheduler::Clock::duration BatchScheduler::quota_time(size_t count) const {
  if (limits_.client_queries_per_minute_max == 0) return {};
  return count * (Clock::duration(kQuotaWindow) / limits_.client_queries_per_minute_max);
}

// The quota is a token bucket that holds the queries of a minute. A full one admits any request.
void BatchScheduler::require_quota(size_t count, const Client& client) const {
  const auto now = limits_.quota_clock();
  const auto accepted_at =
      std::min(client.full_at, client.full_at + quota_time(count) - kQuotaWindow);
  if (accepted_at <= now) return;
  throw OverQuota("this client has used up its quota of " +
                      std::to_string(limits_.client_queries_per_minute_max) + " queries a minute",
                  std::chrono::ceil<std::chrono::seconds>(accepted_at - now));
}

// The caller holds the lock.
BatchScheduler::Clients::pointer BatchScheduler::enter(std::string_view client) {
  if (client.empty()) return nullptr;
  const auto known = clients_.find(client);
  if (known != clients_.end()) return &*known;
  if (clients_.size() >= limits_.quota_clients_max) {
    const auto now = limits_.quota_clock();
    const auto forget = [this](const auto& is_meant) {
      std::erase_if(clients_, [&](const auto& entry) {
        return entry.second.waiting == 0 && is_meant(entry.second);
      });
    };
    forget([&](const Client& other) { return other.full_at <= now; });
    // All are removed at once, so that looking through them is rare.
    if (clients_.size() > limits_.quota_clients_max / 2) forget([](const Client&) { return true; });
  }
  return &*clients_.emplace(client, Client{}).first;
}

// The first of `count` slots for one request, one after another in the ring.
size_t BatchScheduler::claim_slots(const std::shared_ptr<PendingAnswer>& answer, size_t count,
                                   std::string_view client) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  require_room(count, client);
  const Clients::pointer known = enter(client);
  const size_t first = slot_after(head_, claimed_);
  for (size_t i = 0; i < count; ++i) {
    Slot& slot = slots_[slot_after(first, i)];
    slot = {answer, i, false, now, turn_ + 1, known};
    if (known != nullptr) slot.turn = known->second.turn = std::max(turn_, known->second.turn) + 1;
  }
  claimed_ += count;
  if (known == nullptr) return first;
  known->second.waiting += count;
  const auto from = std::max(known->second.full_at, limits_.quota_clock());
  known->second.full_at = from + quota_time(count);
  return first;
}

void BatchScheduler::abandon() {
  std::vector<std::shared_ptr<PendingAnswer>> answers;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    abandoned_ = true;
    for (const Slot& slot : slots_) {
      if (slot.answer && !std::ranges::count(answers, slot.answer)) answers.push_back(slot.answer);
    }
  }
  for (const auto& answer : answers) answer->give_up();
}

void BatchScheduler::work() {
  std::unique_lock lock(mutex_);
  while (!abandoned_) {
    if (is_check_due()) {
      if (batches_.empty()) {
        check_engine(lock);
      } else {
        finish_batch(lock);
      }
      continue;
    }
    if (batches_.empty()) {
      if (!await_work(lock)) continue;
      if (abandoned_ || next_batch().slot_count == 0) return;
    }
    // A second batch begins only when it is full: a query that waits for the first one's end will
    // not be alone, and a batch takes about the same time however many are in it.
    const size_t least = batches_.empty() ? 0 : limits_.batch_max;
    const Next next = next_batch();
    if (batches_.size() < pipeline_->depth() && next.query_count >= least) {
      begin_batch(lock, next.slot_count);
    } else {
      finish_batch(lock);
    }
  }
}

// Returns true when there is a batch to begin, or when there will be none any more, and false when
// a check is due.
bool BatchScheduler::await_work(std::unique_lock<std::mutex>& lock) {
  const auto is_over = [this] {
    return next_batch().slot_count > 0 || (stopping_ && (claimed_ == 0 || abandoned_));
  };
  if (canary_ != nullptr) return changed_.wait_until(lock, next_check_, is_over);
  changed_.wait(lock, is_over);
  return true;
}

// Checks batches of all sizes, so that each kernel has its turn.
void BatchScheduler::check_first() {
  const size_t first = slots_.size() + 1;
  for (size_t i = 0; i <= limits_.batch_max; ++i) {
    pipeline_->put(first + i, canary_->exchanges[i % 2].query);
  }
  do {
    answer_canaries();
  } while (check_size_ > 1);
  next_check_ = Clock::now() + limits_.check_interval;
}

// Requires that no batch has begun.
void BatchScheduler::check_engine(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  try {
    answer_canaries();
  } catch (const std::exception& error) {
    report_failure(error, "a check");
  }
  next_check_ = Clock::now() + limits_.check_interval;
  lock.lock();
}

// Answers a batch of both exchanges in turn. Each lane of the pipeline begins with the one with
// which it did not begin before: a response left in memory from then is wrong.
void BatchScheduler::answer_canaries() {
  const size_t count = check_size_;
  const size_t offset = check_count_++ / AnswerPipeline::kDepthMax % 2;
  pipeline_->begin(slots_.size() + 1 + offset, count);
  const std::span<const uint8_t> responses = pipeline_->finish();
  const size_t each = layout_.response_bytes();
  for (size_t i = 0; i < count; ++i) {
    if (std::ranges::equal(responses.subspan(i * each, each),
                           canary_->exchanges[(offset + i) % 2].response)) {
      continue;
    }
    const std::string kernels = layout_.mode() == Mode::kPacked ? "packing" : "rounding";
    pipeline_->lose_device(
        "the kernels of " + kernels + " are wrong: the response to the server's own query " +
        std::to_string(i) + " in a batch of " + std::to_string(count) + " with the matrix of " +
        std::to_string(layout_.row_count) + " rows and " + std::to_string(layout_.column_count()) +
        " columns is not the host's, and its products are right");
  }
  // Kernels have a tile for each of the first sizes, and for powers of two.
  check_size_ = count < 4 ? count + 1 : 2 * count;
  if (count == limits_.batch_max) check_size_ = 1;
  check_size_ = std::min(check_size_, limits_.batch_max);
}

// The slots of a batch must be neighbours in memory, so a batch ends where the ring does.
BatchScheduler::Next BatchScheduler::next_batch() const {
  const size_t first = slot_after(head_, running_);
  const size_t most = std::min(claimed_ - running_, slots_.size() - first);
  Next next;
  for (; next.slot_count < most && slots_[first + next.slot_count].filled; ++next.slot_count) {
    if (!slots_[first + next.slot_count].answer->is_wanted()) continue;
    if (next.query_count == limits_.batch_max) break;
    ++next.query_count;
  }
  return next;
}

// Moves queries whose turn is sooner into the batch of the next slots, in exchange for as many that
// are in it.
void BatchScheduler::take_turns(size_t slot_count) {
  const size_t first = slot_after(head_, running_);
  turns_.clear();
  size_t query_count = 0;  // of the batch
  for (size_t i = 0; i < claimed_ - running_; ++i) {
    const Slot& slot = slots_[slot_after(first, i)];
    if (!slot.filled || !slot.answer->is_wanted()) continue;
    turns_.push_back(i);
    if (i < slot_count) ++query_count;
  }
  const auto end = turns_.begin() + static_cast<ptrdiff_t>(query_count);
  std::ranges::nth_element(turns_, end, {}, [&](size_t i) {
    const Slot& slot = slots_[slot_after(first, i)];
    return std::tuple(slot.turn, slot.claimed_at, i);
  });
  auto later = end;
  for (auto sooner = turns_.begin(); sooner != end; ++sooner) {
    if (*sooner < slot_count) continue;
    while (*later >= slot_count) ++later;
    const size_t in = first + *later++;
    const size_t out = slot_after(first, *sooner);
    std::swap(slots_[in], slots_[out]);
    const size_t spare = slots_.size();
    sorted_.moves.emplace_back(in, spare);
    sorted_.moves.emplace_back(out, in);
    sorted_.moves.emplace_back(spare, out);
  }
}

// Moves those of the batch's slots that are still wanted to the front, over those that no client
// waits for or whose time is over.
void BatchScheduler::sort_out(Batch& batch) {
  const size_t first = slot_after(head_, running_);
  for (size_t i = 0; i < batch.slot_count; ++i) {
    Slot& slot = slots_[first + i];
    // The query leaves the queue, and its client the list if nothing about it is worth keeping.
    const auto client = std::exchange(slot.client, nullptr);
    if (client != nullptr && --client->second.waiting == 0 &&
        client->second.full_at <= limits_.quota_clock()) {
      clients_.erase(clients_.find(client->first));
    }
    if (batch.begun_at > slot.answer->deadline_ && slot.answer->expire()) {
      sorted_.expired.push_back(slot.answer);
    }
    if (!slot.answer->start()) continue;
    turn_ = std::max(turn_, slot.turn);
    if (observer_ != nullptr) observer_->on_waited(batch.begun_at - slot.claimed_at);
    const size_t to = batch.query_count++;
    if (to == i) continue;
    sorted_.moves.emplace_back(first + i, first + to);
    std::swap(slot, slots_[first + to]);
  }
}

// Hands the engine the slots after those that it has, which no other thread touches until they are
// free.
void BatchScheduler::begin_batch(std::unique_lock<std::mutex>& lock, size_t slot_count) {
  const size_t first = slot_after(head_, running_);
  Batch& batch = batches_.emplace_back(Batch{slot_count, 0, Clock::now()});
  sorted_.moves.clear();
  take_turns(slot_count);
  sort_out(batch);
  running_ += slot_count;
  lock.unlock();
  for (const auto& answer : sorted_.expired) answer->complete(PendingAnswer::Outcome::kExpired);
  sorted_.expired.clear();
  try {
    for (const auto& [from, to] : sorted_.moves) pipeline_->move(from, to);
    if (batch.query_count > 0) pipeline_->begin(first, batch.query_count);
  } catch (const std::exception& error) {
    batch.failed = true;
    report_failure(error, "a batch of " + std::to_string(batch.query_count));
  }
  lock.lock();
}

// Takes the responses of the oldest batch to the clients that wait for them, and frees its slots.
void BatchScheduler::finish_batch(std::unique_lock<std::mutex>& lock) {
  Batch& batch = batches_.front();
  lock.unlock();
  if (batch.query_count > 0 && !batch.failed) {
    try {
      const std::span<const uint8_t> responses = pipeline_->finish();
      const size_t each = layout_.response_bytes();
      for (size_t i = 0; i < batch.query_count; ++i) {
        const Slot& slot = slots_[slot_after(head_, i)];
        std::ranges::copy(responses.subspan(i * each, each),
                          slot.answer->responses_.data() + slot.index * each);
      }
    } catch (const std::exception& error) {
      batch.failed = true;
      report_failure(error, "a batch of " + std::to_string(batch.query_count));
    }
  }
  if (observer_ != nullptr && batch.query_count > 0) {
    const auto end = Clock::now();
    observer_->on_batch(batch.query_count, end - std::max(batch.begun_at, last_end_));
    last_end_ = end;
  }
  lock.lock();
  if (abandoned_) return;
  for (size_t i = 0; i < batch.slot_count; ++i) {
    Slot slot = std::exchange(slots_[slot_after(head_, i)], {});
    if (i >= batch.query_count) continue;
    slot.answer->failed_ |= batch.failed;
    if (--slot.answer->left_ == 0) done_.push_back(std::move(slot.answer));
  }
  running_ -= batch.slot_count;
  claimed_ -= batch.slot_count;
  // Starting over when nothing waits keeps a quiet server in the same few slots.
  head_ = claimed_ == 0 ? 0 : slot_after(head_, batch.slot_count);
  batches_.erase(batches_.begin());
  lock.unlock();
  for (const auto& answer : done_) {
    answer->complete(answer->failed_ ? PendingAnswer::Outcome::kEngineFailed
                                     : PendingAnswer::Outcome::kAnswered);
  }
  done_.clear();
  lock.lock();
}

// The observer logs the failures for which it ends the process.
void BatchScheduler::report_failure(const std::exception& error, const std::string& where) {
  if (dynamic_cast<const DeviceLostError*>(&error) != nullptr) abandon();
  if (observer_ != nullptr) observer_->on_failure(error);
  log_error("the engine failed in {}: {}", where, error.what());
}

}  // namespace blindfuse
