#include "host/ingest/spool.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/arithmetic/little_endian.h"
#include "src/base/errors.h"
#include "src/base/release_memory.h"

namespace blindfuse {

namespace {

constexpr uint32_t kFree = UINT32_MAX;
constexpr size_t kSlotsMin = 64;

}  // namespace

KeyHashSet::KeyHashSet() : slots_(kSlotsMin, kFree) {}

KeyHashSet::Place KeyHashSet::insert(const KeyHash& hash) {
  size_t slot = home_of(hash);
  for (; slots_[slot] != kFree; slot = (slot + 1) & (slots_.size() - 1)) {
    if (hashes_[slots_[slot]] == hash) return {slots_[slot], false};
  }
  const uint32_t number = size();
  invariant(number != kFree, "keys are numbered with 32 bits");
  slots_[slot] = number;
  hashes_.push_back(hash);
  if (2 * hashes_.size() > slots_.size()) grow();
  return {number, true};
}

void KeyHashSet::clear() {
  hashes_.clear();
  std::ranges::fill(slots_, kFree);
}

// The slot hashes of an index database are numbers with a common stride: the multiplication spreads
// those over the upper bits.
size_t KeyHashSet::home_of(const KeyHash& hash) const {
  const int bits = std::countr_zero(slots_.size());
  return static_cast<size_t>(hash.slot_hash * 0x9e3779b97f4a7c15ULL >> (64 - bits));
}

void KeyHashSet::grow() {
  slots_.assign(2 * slots_.size(), kFree);
  for (uint32_t number = 0; number < size(); ++number) {
    size_t slot = home_of(hashes_[number]);
    while (slots_[slot] != kFree) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = number;
  }
}

namespace {

constexpr size_t kBufferBytes = 32 * 1024;
// hash (32), place (8), source (4), length of the value (4), length of the key's start (1).
constexpr size_t kHeaderBytes = 49;
static_assert(Spool::kKeyStartBytes <= UINT8_MAX);

void put_record(const SpoolEntry& entry, std::string_view key, std::vector<char>& buffer) {
  const size_t begin = buffer.size();
  buffer.resize(begin + kHeaderBytes + entry.value.size() + key.size());
  char* at = buffer.data() + begin;
  store_le(at, entry.hash.shard_hash);
  store_le(at + 8, entry.hash.slot_hash);
  std::memcpy(at + 16, entry.hash.digest.data(), 16);
  store_le(at + 32, entry.place);
  store_le(at + 40, entry.source);
  store_le(at + 44, static_cast<uint32_t>(entry.value.size()));
  at[48] = static_cast<char>(key.size());
  entry.value.copy(at + kHeaderBytes, entry.value.size());
  key.copy(at + kHeaderBytes + entry.value.size(), key.size());
}

// An entry as it lies in a buffer or on disk, and the start of its key.
struct Record {
  explicit Record(const char* at) {
    entry.hash.shard_hash = load_le<uint64_t>(at);
    entry.hash.slot_hash = load_le<uint64_t>(at + 8);
    std::memcpy(entry.hash.digest.data(), at + 16, 16);
    entry.place = load_le<uint64_t>(at + 32);
    entry.source = load_le<uint32_t>(at + 40);
    entry.value = {at + kHeaderBytes, load_le<uint32_t>(at + 44)};
    key = {entry.value.data() + entry.value.size(), static_cast<uint8_t>(at[48])};
  }

  const char* end() const { return key.data() + key.size(); }

  SpoolEntry entry;
  std::string_view key;
};

}  // namespace

void SpoolPart::add(const SpoolEntry& entry) {
  constexpr size_t kBlockBytes = 256 * 1024;
  const size_t bytes = entry.value.size();
  if (bytes > free_bytes_) {
    free_bytes_ = std::max(bytes, kBlockBytes);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(free_bytes_));
    free_ = blocks_.back().get();
  }
  entry.value.copy(free_, bytes);
  entries.push_back(entry);
  entries.back().value = {free_, bytes};
  free_ += bytes;
  free_bytes_ -= bytes;
}

Spool::Spool(FileDescriptor file, const std::filesystem::path& folder, DuplicatePolicy policy)
    : folder_(folder), policy_(policy), file_(std::move(file)), partitions_(kPartitions) {}

void Spool::append(const SpoolEntry& entry, std::string_view key) {
  Partition& partition = partitions_[shard_of(entry.hash.shard_hash, kPartitions)];
  const bool keeps_key = policy_ == DuplicatePolicy::kError;
  put_record(entry, keeps_key ? key.substr(0, kKeyStartBytes) : "", partition.buffer);
  ++partition.appended;
  ++appended_count_;
  if (partition.buffer.size() < kBufferBytes) return;
  if (policy_ != DuplicatePolicy::kNone) sift(partition);
  // A key that comes very often leaves room for many more entries.
  if (partition.buffer.size() >= kBufferBytes / 2) flush(partition);
}

void Spool::seal() {
  for (Partition& partition : partitions_) {
    flush(partition);
    release_memory(partition.buffer);
  }
}

// Drops those entries of the buffer that another one replaces.
void Spool::sift(Partition& partition) {
  if (has_duplicate_) return;
  std::vector<char>& buffer = partition.buffer;
  const char* const end = buffer.data() + buffer.size();
  keys_.clear();
  key_of_entry_.clear();
  entry_of_key_.clear();
  for (const char* at = buffer.data(); at < end;) {
    const Record record(at);
    const KeyHashSet::Place key = keys_.insert(record.entry.hash);
    const auto number = static_cast<uint32_t>(key_of_entry_.size());
    key_of_entry_.push_back(key.number);
    if (key.is_new) entry_of_key_.push_back(number);
    if (policy_ == DuplicatePolicy::kLast) entry_of_key_[key.number] = number;
    at = record.end();
  }
  if (keys_.size() == key_of_entry_.size()) return;
  if (policy_ == DuplicatePolicy::kError) {
    has_duplicate_ = true;
    return;
  }
  char* kept = buffer.data();
  const char* at = buffer.data();
  for (uint32_t number = 0; at < end; ++number) {
    const auto bytes = static_cast<size_t>(Record(at).end() - at);
    if (entry_of_key_[key_of_entry_[number]] == number) {
      std::memmove(kept, at, bytes);
      kept += bytes;
    }
    at += bytes;
  }
  buffer.resize(static_cast<size_t>(kept - buffer.data()));
}

void Spool::flush(Partition& partition) {
  const uint64_t total = partition.buffer.size();
  if (total == 0) return;
  for (uint64_t done = 0; done < total;) {
    const ssize_t put = pwrite(file_.get(), partition.buffer.data() + done, total - done,
                               static_cast<off_t>(file_bytes_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      throw ResourceError("cannot write a temporary file in " + folder_.string() + ": " +
                          std::strerror(errno));
    }
    done += static_cast<uint64_t>(put);
  }
  partition.extents.push_back({file_bytes_, total});
  file_bytes_ += total;
  partition.buffer.clear();
}

void Spool::visit(uint32_t partition, const Visitor& visitor) const {
  std::vector<Extent> extents = partitions_[partition].extents;
  const bool is_reversed = policy_ == DuplicatePolicy::kLast;
  if (is_reversed) std::ranges::reverse(extents);
  std::vector<char> bytes;
  std::vector<const char*> records;
  for (const Extent& extent : extents) {
    bytes.resize(extent.bytes);
    read_exactly(file_, extent.offset, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()},
                 folder_);
    records.clear();
    for (const char* at = bytes.data(); at < bytes.data() + bytes.size(); at = Record(at).end()) {
      records.push_back(at);
    }
    if (is_reversed) std::ranges::reverse(records);
    for (const char* at : records) {
      const Record record(at);
      if (!visitor(record.entry, record.key)) return;
    }
  }
}

void Spool::visit_kept(uint32_t partition,
                       const std::function<void(const SpoolEntry&)>& visitor) const {
  KeyHashSet keys;
  visit(partition, [&](const SpoolEntry& entry, std::string_view) {
    if (!keeps_one() || keys.insert(entry.hash).is_new) visitor(entry);
    return true;
  });
}

SpoolPart Spool::load(uint32_t first, uint32_t last) const {
  SpoolPart part;
  // There may be far fewer keys than entries if one entry a key is kept.
  if (!keeps_one()) {
    uint64_t entries = 0;
    for (uint32_t p = first; p <= last; ++p) entries += partitions_[p].appended;
    part.entries.reserve(entries);
  }
  for (uint32_t p = first; p <= last; ++p) {
    visit_kept(p, [&](const SpoolEntry& entry) { part.add(entry); });
  }
  return part;
}

}  // namespace blindfuse
