#include "host/ingest/spool.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "src/errors.h"
#include "src/little_endian.h"

namespace blindfuse {
namespace {

constexpr size_t kBufferBytes = 32 * 1024;
// hash (32), place (8), source (4), length of the value (4)
constexpr size_t kHeaderBytes = 48;

void put_header(const SpoolEntry& entry, char* at) {
  store_le(at, entry.hash.shard_hash);
  store_le(at + 8, entry.hash.slot_hash);
  std::memcpy(at + 16, entry.hash.digest.data(), 16);
  store_le(at + 32, entry.place);
  store_le(at + 40, entry.source);
  store_le(at + 44, static_cast<uint32_t>(entry.value.size()));
}

SpoolEntry take_entry(const char* at) {
  SpoolEntry entry;
  entry.hash.shard_hash = load_le<uint64_t>(at);
  entry.hash.slot_hash = load_le<uint64_t>(at + 8);
  std::memcpy(entry.hash.digest.data(), at + 16, 16);
  entry.place = load_le<uint64_t>(at + 32);
  entry.source = load_le<uint32_t>(at + 40);
  entry.value = {at + kHeaderBytes, load_le<uint32_t>(at + 44)};
  return entry;
}

}  // namespace

Spool::Spool(FileDescriptor file, const std::filesystem::path& folder)
    : folder_(folder), file_(std::move(file)), partitions_(kPartitions) {}

void Spool::append(const SpoolEntry& entry) {
  Partition& partition = partitions_[shard_of(entry.hash.shard_hash, kPartitions)];
  std::vector<char>& buffer = partition.buffer;
  const size_t at = buffer.size();
  buffer.resize(at + kHeaderBytes + entry.value.size());
  put_header(entry, buffer.data() + at);
  if (!entry.value.empty()) {
    std::memcpy(buffer.data() + at + kHeaderBytes, entry.value.data(), entry.value.size());
  }
  ++partition.entries;
  ++entry_count_;
  if (buffer.size() >= kBufferBytes) flush(partition);
}

void Spool::finish() {
  for (Partition& partition : partitions_) {
    flush(partition);
    partition.buffer = {};
  }
}

void Spool::flush(Partition& partition) {
  const uint64_t total = partition.buffer.size();
  if (total == 0) return;
  for (uint64_t done = 0; done < total;) {
    const ssize_t put = pwrite(file_.get(), partition.buffer.data() + done, total - done,
                               static_cast<off_t>(file_bytes_ + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      throw EngineTrouble("cannot write a temporary file in " + folder_.string() + ": " +
                          std::strerror(errno));
    }
    done += static_cast<uint64_t>(put);
  }
  partition.extents.push_back({file_bytes_, total});
  partition.bytes += total;
  file_bytes_ += total;
  partition.buffer.clear();
}

SpoolPart Spool::load(uint32_t first, uint32_t last) const {
  SpoolPart part;
  uint64_t entries = 0;
  for (uint32_t p = first; p <= last; ++p) entries += partitions_[p].entries;
  part.entries.reserve(entries);
  for (uint32_t p = first; p <= last; ++p) {
    const Partition& partition = partitions_[p];
    std::vector<char> bytes(partition.bytes);
    uint64_t at = 0;
    for (const Extent& extent : partition.extents) {
      read_exactly(file_, extent.offset,
                   {reinterpret_cast<uint8_t*>(bytes.data()) + at, extent.bytes}, folder_);
      at += extent.bytes;
    }
    for (const char* next = bytes.data(); next < bytes.data() + bytes.size();) {
      part.entries.push_back(take_entry(next));
      next += kHeaderBytes + part.entries.back().value.size();
    }
    part.bytes_.push_back(std::move(bytes));
  }
  return part;
}

}  // namespace blindfuse
