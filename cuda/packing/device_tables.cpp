#include "cuda/packing/device_tables.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/device/stream.h"
#include "cuda/packing/packing_kernels.h"
#include "cuda/scan/checksum.h"
#include "cuda/scan/scan_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Groups of points that are sent at once: 12.6 MB.
constexpr size_t kGroupsAtOnce = 32;
constexpr size_t kWordsAtOnce = kGroupsAtOnce * kGroupWords;
constexpr size_t kGroupBytes = kGroupWords * sizeof(uint32_t);
static_assert(kPointGroups % kGroupsAtOnce == 0, "tables are sent in whole parts");

uint64_t bytes_needed(size_t pack_count) {
  const auto packs = static_cast<uint32_t>(pack_count);
  return tables_bytes(packs) + sizeof(uint32_t) * (last_key_switch_place(packs, 0) + kWordsAtOnce) +
         sizeof(uint64_t) * kPointGroups * packs;
}

}  // namespace

// Sends tables by way of two buffers, one filled while the other one is on its way.
class DeviceTables::Upload {
 public:
  explicit Upload(DeviceTables& tables)
      : tables_(tables),
        arrived_(kWordsAtOnce),
        sums_(uint64_t{tables.pack_count_} * kPointGroups) {
    for (Staging& staging : staging_) staging.words = PinnedMemory<uint32_t>(kWordsAtOnce);
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  void send(uint32_t pack, PackingTable table) {
    for (uint32_t group = 0; group < kPointGroups; group += kGroupsAtOnce) {
      send(pack, group, table.subspan(table_place(group, 0, 0), kWordsAtOnce));
    }
  }

  // Throws ResourceError, naming the first group that differs from what was sent.
  void check() {
    std::vector<uint64_t> arrived(sent_.size());
    BLINDFUSE_CUDA(cudaMemcpyAsync(arrived.data(), sums_.data(), arrived.size() * sizeof(uint64_t),
                                   cudaMemcpyDeviceToHost, stream_.get()));
    stream_.wait();
    const auto [at, sent] = std::ranges::mismatch(arrived, sent_);
    if (at == arrived.end()) return;
    const auto place = static_cast<size_t>(at - arrived.begin());
    throw ResourceError("group " + std::to_string(place % kPointGroups) +
                        " of the packing table of pack " + std::to_string(place / kPointGroups) +
                        " arrived altered in the device's memory");
  }

 private:
  struct Staging {
    PinnedMemory<uint32_t> words;
    Event sent;
  };

  void send(uint32_t pack, uint32_t first_group, std::span<const uint32_t> words) {
    Staging& staging = staging_[next_];
    next_ = 1 - next_;
    staging.sent.wait();
    std::ranges::copy(words, staging.words.data());
    for (size_t group = 0; group < kGroupsAtOnce; ++group) {
      const uint32_t* of_group = words.data() + group * kGroupWords;
      sent_.push_back(checksum({reinterpret_cast<const uint8_t*>(of_group), kGroupBytes}));
    }
    BLINDFUSE_CUDA(cudaMemcpyAsync(arrived_.data(), staging.words.data(), words.size_bytes(),
                                   cudaMemcpyHostToDevice, stream_.get()));
    staging.sent.record(stream_);
    start_checksums(reinterpret_cast<const int8_t*>(arrived_.data()), kGroupBytes, kGroupsAtOnce,
                    sums_.data() + pack * kPointGroups + first_group, stream_.get());
    start_cut_table({arrived_.data(), first_group, pack, tables_.pack_count_, tables_.bytes_.data(),
                     tables_.last_key_switch_.data()},
                    kGroupsAtOnce, stream_.get());
  }

  DeviceTables& tables_;
  DeviceMemory<uint32_t> arrived_;
  DeviceMemory<unsigned long long> sums_;  // of every group of every table
  std::vector<uint64_t> sent_;
  Staging staging_[2];
  unsigned next_ = 0;
  Stream stream_;  // last: through before the memory goes
};

DeviceTables::DeviceTables(std::span<const SharedPackingTable> tables, uint64_t bytes_beside)
    : pack_count_(static_cast<uint32_t>(tables.size())) {
  require_room(bytes_needed(tables.size()) + bytes_beside, "the packing tables and their queries",
               "build the database in the mode hint, or serve it with --engine cpu");
  bytes_ = DeviceMemory<uint8_t>(tables_bytes(pack_count_));
  last_key_switch_ = DeviceMemory<uint32_t>(last_key_switch_place(pack_count_, 0));
  Upload upload(*this);
  for (uint32_t pack = 0; pack < pack_count_; ++pack) {
    upload.send(pack, PackingTable(tables[pack].get(), kTableWords));
  }
  upload.check();
}

}  // namespace blindfuse
