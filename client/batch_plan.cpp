#include "client/batch_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "client/bucket_matching.h"
#include "src/base/errors.h"
#include "src/protocol/bucket_choice.h"

namespace blindfuse {
namespace {

// The hashes, and zeros after them.
SecretBuffer<KeyHash> with_none(const SecretBuffer<KeyHash>& hashes) {
  SecretBuffer<KeyHash> result(hashes.size() + 1);
  std::copy(hashes.span().begin(), hashes.span().end(), result.span().begin());
  return result;
}

}  // namespace

BatchPlan::BatchPlan(SecretBuffer<KeyHash> hashes, const BatchCode& code)
    : bucket_count_(code.bucket_count),
      request_count_((hashes.size() + code.keys_per_request - 1) / code.keys_per_request),
      hashes_(with_none(hashes)),
      first_of_(hashes.size()),
      request_of_(hashes.size()),
      key_of_(request_count_ * bucket_count_),
      asked_in_(request_count_) {
  invariant(hashes.size() < std::numeric_limits<uint32_t>::max(), "keys have numbers of 32 bits");
  std::fill(request_of_.span().begin(), request_of_.span().end(),
            static_cast<uint32_t>(request_count_));
  std::fill(key_of_.span().begin(), key_of_.span().end(), static_cast<uint32_t>(key_count()));
  find_repeated();
  match(code);
}

void BatchPlan::find_repeated() {
  // Equal hashes are neighbours, the first key first.
  SecretBuffer<uint32_t> order(key_count());
  std::iota(order.span().begin(), order.span().end(), 0u);
  // Not by KeyHash's own order: browsers' standard library has none for arrays.
  const auto place = [this](uint32_t key) {
    const KeyHash& hash = hashes_[key];
    return std::tie(hash.shard_hash, hash.slot_hash, hash.digest);
  };
  std::sort(order.span().begin(), order.span().end(), [&](uint32_t a, uint32_t b) {
    if (place(a) != place(b)) return place(a) < place(b);
    return a < b;
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const bool repeats = i > 0 && hashes_[order[i]] == hashes_[order[i - 1]];
    first_of_[order[i]] = repeats ? first_of_[order[i - 1]] : order[i];
  }
}

void BatchPlan::match(const BatchCode& code) {
  BucketChooser choose(code.bucket_count);
  SecretBuffer<uint32_t> waiting(key_count());
  SecretBuffer<BucketChoice> choices(key_count());  // of those that wait
  size_t end = 0;
  for (uint32_t key = 0; key < key_count(); ++key) {
    if (first_of_[key] != key) continue;
    waiting[end] = key;
    choices[end++] = choose(hashes_[key]);
  }
  size_t begin = 0;
  for (size_t request = 0; request < request_count_; ++request) {
    const size_t requests_left = request_count_ - request;
    const size_t taken = (end - begin + requests_left - 1) / requests_left;
    const SecretBuffer<uint32_t> buckets =
        match_buckets(std::as_const(choices).span().subspan(begin, taken), code.bucket_count);
    // Those that are left out move up to those that were not taken.
    size_t left = begin + taken;
    for (size_t i = taken; i-- > 0;) {
      const uint32_t key = waiting[begin + i];
      if (buckets[i] == kNoBucket) {
        --left;
        waiting[left] = key;
        choices[left] = choices[begin + i];
      } else {
        key_of_[request * bucket_count_ + buckets[i]] = key;
        request_of_[key] = static_cast<uint32_t>(request);
      }
    }
    begin = left;
  }
  for (uint32_t key = 0; key < key_count(); ++key) {
    if (const size_t request = request_of(key); request < request_count_) ++asked_in_[request];
  }
}

}  // namespace blindfuse
