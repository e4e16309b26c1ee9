// Counts how often a full request for several keys leaves one out, because its buckets have other
// keys (host/publish/left_out_keys.h has what was counted).
//
// Each key of a request has three different random buckets, as SHA-256 gives them to the keys of a
// database. A key is left out if and only if no matching of keys to buckets has all keys, which
// augmenting paths decide (Kuhn), as in the client.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "host/publish/left_out_keys.h"
#include "host/system/worker_threads.h"
#include "src/arithmetic/batch_code.h"
#include "src/arithmetic/mulhi.h"
#include "src/base/errors.h"
#include "src/program/program.h"

namespace blindfuse::bench {
namespace {

// Requests with a generator of their own, so that the counts do not depend on the threads.
constexpr uint64_t kChunk = 1 << 16;

struct Options {
  uint32_t keys_per_request = 0;
  uint32_t bucket_count = 0;  // 0: the usual number
  uint64_t requests = 1'000'000;
  unsigned threads = 0;
  uint64_t seed = 1;
  bool json = false;
};

class RandomRequests {
 public:
  RandomRequests(const BatchCode& code, std::mt19937_64& random)
      : bucket_count_(code.bucket_count),
        random_(random),
        choices_(code.keys_per_request),
        key_of_(code.bucket_count),
        visit_of_(code.bucket_count) {}

  // Draws the next request. Whether a key of it is left out.
  bool next_leaves_out() {
    for (auto& buckets : choices_) buckets = draw();
    std::ranges::fill(key_of_, kFree);
    for (uint32_t key = 0; key < choices_.size(); ++key) {
      ++visit_;
      if (!place(key)) return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kFree = 0xffff'ffff;
  using Buckets = std::array<uint32_t, kBucketChoices>;

  // Each pick takes one of the buckets that are left, and leaves the rest of the word to the next.
  Buckets draw() {
    uint64_t word = random_();
    const auto pick = [&](uint32_t count) {
      const auto picked = static_cast<uint32_t>(mulhi(word, count));
      word *= count;
      return picked;
    };
    const uint32_t first = pick(bucket_count_);
    uint32_t second = pick(bucket_count_ - 1);
    if (second >= first) ++second;
    uint32_t third = pick(bucket_count_ - 2);
    if (third >= std::min(first, second)) ++third;
    if (third >= std::max(first, second)) ++third;
    return {first, second, third};
  }

  // Puts the key into a free bucket, or moves other keys along an augmenting path.
  bool place(uint32_t key) {
    for (const uint32_t bucket : choices_[key]) {
      if (key_of_[bucket] != kFree) continue;
      key_of_[bucket] = key;
      return true;
    }
    for (const uint32_t bucket : choices_[key]) {
      if (visit_of_[bucket] == visit_) continue;
      visit_of_[bucket] = visit_;
      if (!place(key_of_[bucket])) continue;
      key_of_[bucket] = key;
      return true;
    }
    return false;
  }

  const uint32_t bucket_count_;
  std::mt19937_64& random_;
  std::vector<Buckets> choices_;    // of each key
  std::vector<uint32_t> key_of_;    // of each bucket
  std::vector<uint64_t> visit_of_;  // the search that came last
  uint64_t visit_ = 0;
};

// Requests that leave a key out.
uint64_t count_left_out(const BatchCode& code, const Options& options, WorkerThreads& threads) {
  std::vector<uint64_t> counts(threads.count());
  const uint64_t chunks = (options.requests + kChunk - 1) / kChunk;
  threads.run_each(chunks, [&](unsigned thread, size_t chunk) {
    const auto low = [](uint64_t number) { return static_cast<uint32_t>(number); };
    std::seed_seq seed{low(options.seed), low(options.seed >> 32), low(chunk), low(chunk >> 32)};
    std::mt19937_64 random(seed);
    RandomRequests requests(code, random);
    const uint64_t first = chunk * kChunk;
    const uint64_t end = std::min(options.requests, first + kChunk);
    uint64_t left_out = 0;
    for (uint64_t i = first; i < end; ++i) left_out += requests.next_leaves_out() ? 1 : 0;
    counts[thread] += left_out;
  });
  uint64_t total = 0;
  for (const uint64_t part : counts) total += part;
  return total;
}

void run(const Options& options) {
  const uint32_t keys = options.keys_per_request;
  const BatchCode code{keys,
                       options.bucket_count == 0 ? usual_bucket_count(keys) : options.bucket_count};
  if (code.bucket_count < keys) {
    throw UsageError("--buckets " + std::to_string(code.bucket_count) + " has no room for " +
                     std::to_string(keys) + " keys; take at least as many buckets");
  }
  WorkerThreads threads(options.threads);
  const auto start = std::chrono::steady_clock::now();
  const uint64_t left_out = count_left_out(code, options, threads);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double bound = upper_confidence_bound(left_out, options.requests);
  if (options.json) {
    const nlohmann::json line = {
        {"keys_per_request", keys},     {"bucket_count", code.bucket_count},
        {"requests", options.requests}, {"left_out", left_out},
        {"left_out_bound", bound},      {"seed", options.seed},
        {"threads", threads.count()},   {"seconds", seconds},
    };
    std::puts(line.dump().c_str());
    return;
  }
  std::printf(
      "%u keys in %u buckets: %llu of %llu requests leave a key out, with 95 %% confidence at most "
      "%.2e of all (%.1f s, %u threads)\n",
      keys, code.bucket_count, static_cast<unsigned long long>(left_out),
      static_cast<unsigned long long>(options.requests), bound, seconds, threads.count());
}

}  // namespace
}  // namespace blindfuse::bench

int main(int argc, char** argv) {
  using namespace blindfuse;
  CLI::App app(
      "Simulates full requests for several keys, and counts those that leave a key out because "
      "other keys have its buckets.",
      "blindfuse-bench-batches");
  bench::Options options;
  app.add_option("--keys-per-request", options.keys_per_request, "Keys of a request")
      ->required()
      ->check(CLI::Range(kKeysPerRequestMin, kKeysPerRequestMax));
  app.add_option("--buckets", options.bucket_count,
                 "Buckets (default: as many as a database has for these requests)")
      ->check(CLI::Range(kBucketChoices, kBucketCountMax));
  app.add_option("--requests", options.requests,
                 "Number of requests, such as 250000 or 1M (k, M and G)")
      ->transform(
          CLI::AsNumberWithUnit(
              std::map<std::string, uint64_t>{{"k", 1'000}, {"M", 1'000'000}, {"G", 1'000'000'000}},
              CLI::AsNumberWithUnit::UNIT_OPTIONAL)
              .description(""))
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000'000}))
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Number of threads; 0: one for each processor that the process may use")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "The requests of a seed are always the same")
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print a JSON object");
  app.callback([&options] { bench::run(options); });
  return run_program(app, argc, argv);
}
