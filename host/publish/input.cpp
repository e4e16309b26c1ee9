#include "host/publish/input.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "host/ingest/key_value_source.h"
#include "src/base/base64.h"
#include "src/base/errors.h"
#include "src/base/hex.h"
#include "src/program/progress.h"
#include "src/protocol/key_hash.h"

namespace blindfuse {

namespace {

// The longest prefix of at most `bytes` bytes that does not end inside a UTF-8 character.
std::string_view cut_text(std::string_view text, size_t bytes) {
  while (bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

// Neighbouring pairs go to different partitions, so that no partition is much larger than another.
uint64_t spread(uint64_t i) {
  return (uint64_t{index_partition(i)} << 54) | (i / Spool::kPartitions);
}

uint64_t total_bytes(const std::vector<std::unique_ptr<KeyValueSource>>& sources) {
  uint64_t total = 0;
  for (const auto& source : sources) {
    if (!source->bytes_total()) return 0;
    total += *source->bytes_total();
  }
  return total;
}

class InputReader {
 public:
  InputReader(const Salt& salt, const InputOptions& options, std::unique_ptr<Spool> spool)
      : options_(options), hasher_(salt) {
    input_.spool = std::move(spool);
    input_.key_encoding = options.key_encoding;
  }

  void read(KeyValueSource& source, Progress& progress) {
    input_.sources.push_back({source.name(), std::string(source.place_unit())});
    const uint64_t bytes_before = bytes_done_;
    KeyValuePair pair;
    for (uint64_t i = 0; !input_.spool->has_duplicate() && source.next(pair); ++i) {
      add(source, pair);
      if (i % 1024 == 0) progress.set_done(bytes_before + source.bytes_read());
    }
    bytes_done_ += source.bytes_read();
  }

  Input take_input() {
    if (input_.spool->appended_count() == 0) {
      throw InputError("the input is empty: no pair in " + input_.sources.front().name +
                       (input_.sources.size() > 1 ? " or the other inputs" : ""));
    }
    input_.spool->seal();
    return std::move(input_);
  }

 private:
  void add(const KeyValueSource& source, const KeyValuePair& pair) {
    SpoolEntry entry;
    entry.value = fit(source, pair);
    entry.place = pair.place;
    entry.source = static_cast<uint32_t>(input_.sources.size() - 1);
    const uint64_t number = input_.spool->appended_count();
    if (number == kKeyCountMax) throw InputError("the input has more than 2^32 pairs");
    if (options_.kind == DatabaseKind::kIndex) {
      entry.hash.shard_hash = spread(number);
      entry.hash.slot_hash = number;
    } else {
      entry.hash = hasher_(pair.key);
      keep_sample(entry.hash.slot_hash, pair.key);
    }
    input_.spool->append(entry, pair.key);
    input_.bytes += pair.key.size() + entry.value.size();
  }

  std::string_view fit(const KeyValueSource& source, const KeyValuePair& pair) {
    if (pair.value.size() <= options_.value_bytes_max) return pair.value;
    if (options_.long_values == LongValues::kError) {
      throw InputError(source.name() + ", " + std::string(source.place_unit()) + " " +
                       std::to_string(pair.place) + ": the value has " +
                       std::to_string(pair.value.size()) + " bytes; at most " +
                       std::to_string(options_.value_bytes_max) +
                       " are allowed (--value-bytes-max N with --long-values truncate cuts it)");
    }
    ++input_.truncated_values;
    return options_.values_are_text ? cut_text(pair.value, options_.value_bytes_max)
                                    : pair.value.substr(0, options_.value_bytes_max);
  }

  void keep_sample(uint64_t slot_hash, std::string_view key) {
    auto& samples = input_.sample_keys;
    if (samples.size() == kSampleCount && slot_hash >= samples.rbegin()->first) return;
    samples.emplace(slot_hash, key);
    if (samples.size() > kSampleCount) samples.erase(std::prev(samples.end()));
  }

  const InputOptions options_;
  KeyHasher hasher_;
  Input input_;
  uint64_t bytes_done_ = 0;
};

// Puts the entries into another spool. make_placer() gives, for each partition, a function
// place(entry, emit) that calls emit for each entry that takes the place of one. Partitions are
// read and placed on all threads, which write in turns.
template <typename MakePlacer>
void sort_again(const Spool& spool, Spool& result, WorkerThreads& threads,
                const MakePlacer& make_placer) {
  constexpr size_t kEntriesATurn = 4096;
  std::mutex writing;
  Progress progress("sorting", Spool::kPartitions, Progress::Unit::kItems);
  threads.run_each(Spool::kPartitions, [&](unsigned, size_t number) {
    const auto p = static_cast<uint32_t>(number);
    auto place = make_placer();
    const SpoolPart part = spool.load(p, p);
    std::vector<SpoolEntry> placed;  // of one turn at writing
    const auto write = [&] {
      const std::lock_guard lock(writing);
      for (const SpoolEntry& entry : placed) result.append(entry);
      placed.clear();
    };
    for (const SpoolEntry& entry : part.entries) {
      place(entry, [&](const SpoolEntry& other) { placed.push_back(other); });
      if (placed.size() >= kEntriesATurn) write();
    }
    write();
    progress.advance(1);
  });
  result.seal();
}

}  // namespace

uint64_t lowest_shard_hash(uint32_t shard, uint32_t shard_count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(((Wide{shard} << 64) + shard_count - 1) / shard_count);
}

uint32_t index_partition(uint64_t i) { return static_cast<uint32_t>(i % Spool::kPartitions); }

Input read_input(const std::vector<std::unique_ptr<KeyValueSource>>& sources, const Salt& salt,
                 const InputOptions& options, std::unique_ptr<Spool> spool) {
  InputReader reader(salt, options, std::move(spool));
  Progress progress("reading", total_bytes(sources), Progress::Unit::kBytes);
  for (const auto& source : sources) reader.read(*source, progress);
  return reader.take_input();
}

std::unique_ptr<Spool> spool_by_shard(const Spool& spool, uint32_t shard_count,
                                      std::unique_ptr<Spool> result, WorkerThreads& threads) {
  const PublicDivisor shards(shard_count);
  sort_again(spool, *result, threads, [&] {
    return [&](SpoolEntry entry, const auto& emit) {
      const IndexPlace place = index_place(entry.hash.slot_hash, shards);
      entry.hash.shard_hash = lowest_shard_hash(place.shard, shard_count);
      entry.hash.slot_hash = place.row;
      emit(entry);
    };
  });
  return result;
}

std::unique_ptr<Spool> spool_by_bucket(const Spool& spool, uint32_t shard_count,
                                       uint32_t bucket_count, std::unique_ptr<Spool> result,
                                       WorkerThreads& threads) {
  const uint32_t bucket_shards = shard_count / bucket_count;
  sort_again(spool, *result, threads, [&] {
    return [&, choose = BucketChooser(bucket_count)](SpoolEntry entry, const auto& emit) mutable {
      const uint64_t shard_hash = entry.hash.shard_hash;
      for (const uint32_t bucket : choose(entry.hash)) {
        const uint32_t shard = shard_in_bucket(shard_hash, bucket, bucket_shards);
        entry.hash.shard_hash = lowest_shard_hash(shard, shard_count);
        emit(entry);
      }
    };
  });
  return result;
}

std::string place_name(const Input& input, uint32_t source, uint64_t place) {
  const SourceName& name = input.sources[source];
  return name.name + ", " + name.place_unit + " " + std::to_string(place);
}

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
