#include "host/build/survey.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <tuple>

#include "src/errors.h"

namespace blindfuse {
namespace {

// A key that comes again, and where it came before.
struct Duplicate {
  SpoolEntry first;
  SpoolEntry again;

  // The one that a reader of the input meets first.
  bool operator<(const Duplicate& other) const {
    return std::tie(again.source, again.place) < std::tie(other.again.source, other.again.place);
  }
};

struct Tally {
  uint64_t duplicates = 0;
  std::optional<Duplicate> earliest;
  std::vector<uint64_t> lengths =
      std::vector<uint64_t>(kValueBytesMax + 1);  // values of each length

  void add_duplicate(Duplicate duplicate) {
    ++duplicates;
    duplicate.first.value = duplicate.again.value = {};  // their bytes go with the partition
    if (!earliest || duplicate < *earliest) earliest = duplicate;
  }

  void add(const Tally& other) {
    duplicates += other.duplicates;
    if (other.earliest && (!earliest || *other.earliest < *earliest)) earliest = other.earliest;
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] += other.lengths[i];
  }
};

// Calls work(entries) for every partition, on all threads.
template <typename Work>
void for_each_partition(const Spool& spool, WorkerThreads& threads, const Work& work) {
  std::atomic<uint32_t> next = 0;
  threads.run([&](unsigned index) {
    for (uint32_t p = next++; p < Spool::kPartitions; p = next++) {
      SpoolPart part = spool.load(p, p);
      work(index, part.entries);
    }
  });
}

uint32_t length_at(const std::vector<uint64_t>& lengths, uint64_t rank) {
  uint64_t seen = 0;
  for (uint32_t length = 0; length < lengths.size(); ++length) {
    seen += lengths[length];
    if (seen > rank) return length;
  }
  return kValueBytesMax;
}

[[noreturn]] void refuse(const Input& input, const Tally& tally) {
  const std::string more =
      tally.duplicates > 1 ? " (and " + std::to_string(tally.duplicates - 1) + " more)" : "";
  throw BadInput("a key comes twice: " + place_name(input, tally.earliest->first) + " and " +
                 place_name(input, tally.earliest->again) + more +
                 "; --on-duplicate first or last keeps one of them");
}

}  // namespace

Survey survey_input(const Input& input, DuplicatePolicy policy, WorkerThreads& threads) {
  std::vector<Tally> tallies(threads.count());
  for_each_partition(*input.spool, threads, [&](unsigned index, std::vector<SpoolEntry>& entries) {
    Tally& tally = tallies[index];
    const size_t before = entries.size();
    resolve_duplicates(entries, policy);
    tally.duplicates += before - entries.size();
    for (size_t i = 0; i < entries.size(); ++i) {
      ++tally.lengths[entries[i].value.size()];
      if (i > 0 && entries[i].hash == entries[i - 1].hash) {
        tally.add_duplicate({entries[i - 1], entries[i]});
      }
    }
  });
  Tally total;
  for (const Tally& tally : tallies) total.add(tally);
  if (total.earliest) refuse(input, total);
  Survey survey;
  survey.duplicates_dropped = total.duplicates;
  survey.key_count = input.spool->entry_count() - total.duplicates;
  survey.shortest_value = length_at(total.lengths, 0);
  survey.median_value = length_at(total.lengths, survey.key_count / 2);
  survey.percentile99_value = length_at(total.lengths, (survey.key_count - 1) * 99 / 100);
  survey.longest_value = length_at(total.lengths, survey.key_count - 1);
  return survey;
}

std::vector<uint64_t> count_shards(const Spool& spool, uint32_t shard_count, DuplicatePolicy policy,
                                   WorkerThreads& threads) {
  std::vector<std::vector<uint64_t>> counts(threads.count(), std::vector<uint64_t>(shard_count));
  for_each_partition(spool, threads, [&](unsigned index, std::vector<SpoolEntry>& entries) {
    if (policy != DuplicatePolicy::kError) resolve_duplicates(entries, policy);
    for (const SpoolEntry& entry : entries) {
      ++counts[index][shard_of(entry.hash.shard_hash, shard_count)];
    }
  });
  std::vector<uint64_t> total(shard_count);
  for (const std::vector<uint64_t>& part : counts) {
    std::ranges::transform(part, total, total.begin(), std::plus<>());
  }
  return total;
}

}  // namespace blindfuse
