#include "host/publish/survey.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "host/ingest/input_error.h"
#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/protocol/key_hash.h"

namespace blindfuse {
namespace {

// The place in the input from which an entry came.
struct Origin {
  uint64_t place;
  uint32_t source;

  auto operator<=>(const Origin& other) const {
    return std::tie(source, place) <=> std::tie(other.source, other.place);
  }
};

// A key that comes again, and where it came before.
struct Duplicate {
  Origin first;
  Origin again;
  std::string key;  // its start
};

struct Tally {
  uint64_t keys = 0;
  uint64_t duplicates = 0;
  std::optional<Duplicate> earliest;  // the one that a reader of the input meets first
  std::vector<uint64_t> lengths =
      std::vector<uint64_t>(kValueBytesMax + 1);  // values of each length

  void offer(const Duplicate& duplicate) {
    if (!earliest || duplicate.again < earliest->again) earliest = duplicate;
  }
};

// Goes through one partition after the other, without holding more of it than its keys.
class PartitionSurvey {
 public:
  PartitionSurvey(const Spool& spool, DuplicatePolicy policy) : spool_(spool), policy_(policy) {}

  void add(uint32_t partition) {
    keys_.clear();
    origins_.clear();
    spool_.visit(partition, [&](const SpoolEntry& entry, std::string_view key) {
      add(entry, key);
      return true;
    });
    tally_.keys += keys_.size();
  }

  const Tally& tally() const { return tally_; }

 private:
  void add(const SpoolEntry& entry, std::string_view key) {
    const Origin origin{entry.place, entry.source};
    const KeyHashSet::Place place = keys_.insert(entry.hash);
    if (place.is_new) {
      ++tally_.lengths[entry.value.size()];
      if (policy_ == DuplicatePolicy::kError) origins_.push_back(origin);
      return;
    }
    ++tally_.duplicates;
    if (policy_ != DuplicatePolicy::kError) return;
    if (tally_.earliest && tally_.earliest->again < origin) return;
    tally_.offer({origins_[place.number], origin, std::string(key)});
  }

  const Spool& spool_;
  const DuplicatePolicy policy_;
  Tally tally_;
  KeyHashSet keys_;
  std::vector<Origin> origins_;  // of each key
};

uint32_t length_at(const std::vector<uint64_t>& lengths, uint64_t rank) {
  uint64_t seen = 0;
  for (uint32_t length = 0; length < lengths.size(); ++length) {
    seen += lengths[length];
    if (seen > rank) return length;
  }
  return kValueBytesMax;
}

// The sums of the counts that add(partition, counts) makes of every partition, on all threads.
template <typename Add>
std::vector<uint64_t> count(uint32_t shard_count, WorkerThreads& threads, const Add& add) {
  std::vector<std::vector<uint64_t>> counts(threads.count(), std::vector<uint64_t>(shard_count));
  threads.run_each(Spool::kPartitions,
                   [&](unsigned index, size_t p) { add(static_cast<uint32_t>(p), counts[index]); });
  std::vector<uint64_t> total(shard_count);
  for (const std::vector<uint64_t>& part : counts) {
    std::ranges::transform(part, total, total.begin(), std::plus<>());
  }
  return total;
}

// The number of keys in each shard.
std::vector<uint64_t> count_shards(const Spool& spool, uint32_t shard_count,
                                   WorkerThreads& threads) {
  return count(shard_count, threads, [&](uint32_t p, std::vector<uint64_t>& counts) {
    spool.visit_kept(p, [&](const SpoolEntry& entry) {
      ++counts[shard_of(entry.hash.shard_hash, shard_count)];
    });
  });
}

// The number of records in each shard, where each key is in a shard of each of its three buckets.
std::vector<uint64_t> count_bucket_shards(const Spool& spool, uint32_t shard_count,
                                          uint32_t bucket_count, WorkerThreads& threads) {
  const uint32_t bucket_shards = shard_count / bucket_count;
  return count(shard_count, threads, [&](uint32_t p, std::vector<uint64_t>& counts) {
    BucketChooser choose(bucket_count);
    spool.visit_kept(p, [&](const SpoolEntry& entry) {
      for (const uint32_t bucket : choose(entry.hash)) {
        ++counts[shard_in_bucket(entry.hash.shard_hash, bucket, bucket_shards)];
      }
    });
  });
}

// The key as the input has it; of a long key, its start.
std::string key_text(const std::string& key, TextEncoding encoding) {
  const std::span bytes(reinterpret_cast<const uint8_t*>(key.data()), key.size());
  switch (encoding) {
    case TextEncoding::kHex:
      return blindfuse::quoted(encode_hex(bytes));
    case TextEncoding::kBase64:
      return blindfuse::quoted(encode_base64(bytes));
    case TextEncoding::kUtf8:
      break;
  }
  return blindfuse::quoted(key);
}

[[noreturn]] void refuse(const Input& input, const Tally& tally) {
  const Duplicate& duplicate = *tally.earliest;
  std::string more;
  if (tally.duplicates > 1) {
    // Reading ends early when there are many duplicates near each other.
    more = std::string(input.spool->has_duplicate() ? " (and at least " : " (and ") +
           std::to_string(tally.duplicates - 1) + " more)";
  }
  const auto name = [&](const Origin& origin) {
    return place_name(input, origin.source, origin.place);
  };
  throw InputError("the key " + key_text(duplicate.key, input.key_encoding) +
                   " comes twice: " + name(duplicate.first) + " and " + name(duplicate.again) +
                   more + "; --on-duplicate first or last keeps one of them");
}

}  // namespace

Survey survey_input(const Input& input, DuplicatePolicy policy, WorkerThreads& threads) {
  std::vector<PartitionSurvey> surveys(threads.count(), {*input.spool, policy});
  threads.run_each(Spool::kPartitions,
                   [&](unsigned index, size_t p) { surveys[index].add(static_cast<uint32_t>(p)); });
  Tally total;
  for (const PartitionSurvey& survey : surveys) {
    const Tally& part = survey.tally();
    total.keys += part.keys;
    total.duplicates += part.duplicates;
    if (part.earliest) total.offer(*part.earliest);
    std::ranges::transform(part.lengths, total.lengths, total.lengths.begin(), std::plus<>());
  }
  if (total.earliest) refuse(input, total);
  Survey survey;
  survey.key_count = total.keys;
  survey.duplicates_dropped = input.spool->appended_count() - total.keys;
  survey.shortest_value = length_at(total.lengths, 0);
  survey.median_value = length_at(total.lengths, survey.key_count / 2);
  survey.percentile99_value = length_at(total.lengths, (survey.key_count - 1) * 99 / 100);
  survey.longest_value = length_at(total.lengths, survey.key_count - 1);
  return survey;
}

uint64_t fullest_shard(const Spool& spool, const Layout& layout, WorkerThreads& threads) {
  const uint32_t shards = layout.shard_count;
  if (layout.kind == DatabaseKind::kIndex || shards == 1)
    return (layout.key_count + shards - 1) / shards;
  return std::ranges::max(layout.batch
                              ? count_bucket_shards(spool, shards, layout.bucket_count(), threads)
                              : count_shards(spool, shards, threads));
}

}  // namespace blindfuse
