// Counts how often a full request for several keys leaves one out, because its buckets have other
// keys (docs/PARAMETERS.md, section 9, has what was counted).
//
// Each key of a request has three different random buckets, as SHA-256 gives them to the keys of a
// database. The client's matching gives the buckets to the keys.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "client/bucket_matching.h"
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

// The upper end of the 95 % confidence interval, one-sided, of the probability of an event that was
// seen `seen` times in `trials` independent trials. It is 3 / trials where it was never seen, which
// is Clopper and Pearson's bound to 0.2 %, and otherwise the 95 % quantile of the gamma
// distribution of shape seen + 1, divided by trials: their bound for a rare event. The quantile is
// Wilson and Hilferty's approximation, which is right to 1 %. At most 1.
double upper_confidence_bound(uint64_t seen, uint64_t trials) {
  const auto count = static_cast<double>(trials);
  if (seen == 0) return std::min(1.0, 3.0 / count);
  constexpr double kNormalQuantile = 1.644854;  // 95 %
  const double shape = static_cast<double>(seen) + 1.0;
  const double root = 1.0 - 1.0 / (9.0 * shape) + kNormalQuantile / (3.0 * std::sqrt(shape));
  return std::min(1.0, shape * root * root * root / count);
}

// Each pick takes one of the buckets that are left, and leaves the rest of the word to the next.
BucketChoice draw(uint32_t bucket_count, std::mt19937_64& random) {
  uint64_t word = random();
  const auto pick = [&](uint32_t count) {
    const auto picked = static_cast<uint32_t>(mulhi(word, count));
    word *= count;
    return picked;
  };
  const uint32_t first = pick(bucket_count);
  uint32_t second = pick(bucket_count - 1);
  if (second >= first) ++second;
  uint32_t third = pick(bucket_count - 2);
  if (third >= std::min(first, second)) ++third;
  if (third >= std::max(first, second)) ++third;
  return {first, second, third};
}

// Draws the next request. Whether a key of it is left out.
bool next_leaves_out(const BatchCode& code, std::mt19937_64& random,
                     std::vector<BucketChoice>& keys) {
  for (BucketChoice& key : keys) key = draw(code.bucket_count, random);
  const SecretBuffer<uint32_t> buckets = match_buckets(keys, code.bucket_count);
  return std::ranges::find(buckets.span(), kNoBucket) != buckets.span().end();
}

// Requests that leave a key out.
uint64_t count_left_out(const BatchCode& code, const Options& options, WorkerThreads& threads) {
  std::vector<uint64_t> counts(threads.count());
  const uint64_t chunks = (options.requests + kChunk - 1) / kChunk;
  threads.run_each(chunks, [&](unsigned thread, size_t chunk) {
    const auto low = [](uint64_t number) { return static_cast<uint32_t>(number); };
    std::seed_seq seed{low(options.seed), low(options.seed >> 32), low(chunk), low(chunk >> 32)};
    std::mt19937_64 random(seed);
    std::vector<BucketChoice> keys(code.keys_per_request);
    const uint64_t first = chunk * kChunk;
    const uint64_t end = std::min(options.requests, first + kChunk);
    uint64_t left_out = 0;
    for (uint64_t i = first; i < end; ++i) left_out += next_leaves_out(code, random, keys) ? 1 : 0;
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
