#include "client/bucket_places.h"

#include "src/base/errors.h"

namespace blindfuse {

SecretBuffer<BucketRows> places_in_buckets(const DatabaseDescription& database,
                                           const BatchPlan& plan, size_t request,
                                           std::span<KeyPlace> places, std::span<uint32_t> keys) {
  invariant(places.size() == database.layout().bucket_count() && keys.size() == places.size(),
            "there is room for every bucket");
  SecretBuffer<BucketRows> buckets(places.size());
  for (uint32_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const uint32_t key = plan.key_of(request, bucket);
    places[bucket] = database.place(plan.hash_of(key), bucket);
    keys[bucket] = key;
    buckets[bucket].rows = places[bucket].rows;
    buckets[bucket].asks = static_cast<uint32_t>(key != plan.key_count());
  }
  return buckets;
}

}  // namespace blindfuse
