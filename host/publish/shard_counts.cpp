#include "host/publish/shard_counts.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "src/base/errors.h"

namespace blindfuse {
namespace {

uint64_t records_of(const PlanRequest& request) {
  return request.key_count * (request.batch ? kBucketChoices : 1);
}

// 2^k and 3 * 2^k, or, with finer steps, eight between two powers. In order.
std::vector<uint32_t> shard_grid(uint32_t steps, uint32_t most) {
  std::vector<uint32_t> counts = {1};
  for (uint32_t power = 2; power <= most; power *= 2) {
    for (uint32_t step = 0; step < std::min(steps, power); ++step) {
      const uint32_t count = power + power / std::min(steps, power) * step;
      if (count <= most) counts.push_back(count);
    }
  }
  return counts;
}

void check_fixed_shards(uint32_t shard_count, const BatchCode& batch) {
  if (shard_count % batch.bucket_count == 0) return;
  const std::string buckets = std::to_string(batch.bucket_count);
  const uint32_t below = shard_count / batch.bucket_count * batch.bucket_count;
  const uint32_t above = below + batch.bucket_count;
  throw InputError("--shards " + std::to_string(shard_count) + " is not a multiple of the " +
                   buckets + " buckets of requests for " + std::to_string(batch.keys_per_request) +
                   " keys; take " + (below > 0 ? std::to_string(below) + " or " : "") +
                   std::to_string(above) + ", or leave --shards out");
}

}  // namespace

uint64_t expected_fullest_shard(uint64_t record_count, uint32_t shard_count) {
  if (shard_count == 1) return record_count;
  const double mean = static_cast<double>(record_count) / shard_count;
  const double log_shards = std::log(shard_count);
  const double excess = std::sqrt(2.0 * mean * log_shards) + log_shards / 3.0;
  return std::min(record_count, static_cast<uint64_t>(std::ceil(mean + excess)));
}

uint64_t expected_fullest_shard(const PlanRequest& request, uint32_t shard_count) {
  if (request.kind == DatabaseKind::kIndex) {
    return (request.key_count + shard_count - 1) / shard_count;
  }
  return expected_fullest_shard(records_of(request), shard_count);
}

// All buckets have as many shards.
std::vector<uint32_t> shard_choices(const PlanRequest& request) {
  if (request.shard_count) {
    if (request.batch) check_fixed_shards(*request.shard_count, *request.batch);
    return {*request.shard_count};
  }
  // With a second level, where more shards cost hardly any bytes but memory, and with several keys,
  // where memory decides, there are a few per cent between neighbours.
  const uint32_t steps = request.levels == 2 || request.batch ? 8 : 2;
  const uint32_t buckets = request.batch ? request.batch->bucket_count : 1;
  std::vector<uint32_t> choices = shard_grid(steps, kShardCountMax / buckets);
  for (uint32_t& choice : choices) choice *= buckets;
  // As long as a shard has a few records.
  const uint64_t records = records_of(request);
  std::erase_if(choices, [&](uint32_t s) { return s > buckets && records / s < 16; });
  return choices;
}

}  // namespace blindfuse
