#include "cuda/packing/device_tables.h"

#include <algorithm>
#include <optional>
#include <string>

#include "cuda/checks/checksum.h"
#include "cuda/device/device_loss.h"
#include "cuda/device/stream.h"
#include "cuda/packing/packing_kernels.h"
#include "src/base/errors.h"

namespace blindfuse {
namespace {

// Groups of points that are sent at once: 6.3 MB.
constexpr size_t kGroupsAtOnce = 32;
constexpr size_t kWordsAtOnce = kGroupsAtOnce * kGroupWords;
static_assert(kPointGroups % kGroupsAtOnce == 0, "tables are sent in whole parts");

}  // namespace

// Sends tables by way of two buffers, one filled while the other one is on its way, and cuts up
// what has arrived when its checksum is right.
class DeviceTables::Upload {
 public:
  explicit Upload(DeviceTables& tables) : tables_(tables), arrived_(kWordsAtOnce) {
    for (Staging& staging : staging_) staging.words = PinnedMemory<uint32_t>(kWordsAtOnce);
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  // Throws DeviceLostError when the one before has arrived altered.
  void send(uint32_t pack, PackingTable table) {
    for (uint32_t group = 0; group < kPointGroups; group += kGroupsAtOnce) {
      send(pack, group, table.subspan(table_place(group, 0, 0), kWordsAtOnce));
    }
  }

  // Waits for the last one. Throws DeviceLostError when it has arrived altered.
  void finish() {
    if (on_its_way_) take(*on_its_way_);
    on_its_way_.reset();
    stream_.wait();
  }

 private:
  struct Staging {
    PinnedMemory<uint32_t> words;
    Event sent;
  };
  // Groups of points, in arrived_.
  struct Part {
    uint32_t pack, first_group;
    uint64_t checksum;
  };

  void send(uint32_t pack, uint32_t first_group, std::span<const uint32_t> words) {
    Staging& staging = staging_[next_];
    next_ = 1 - next_;
    staging.sent.wait();
    std::ranges::copy(words, staging.words.data());
    const Part part{
        pack, first_group,
        PartialChecksum({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()})
            .weighted_sum};
    if (on_its_way_) take(*on_its_way_);
    BLINDFUSE_CUDA(cudaMemcpyAsync(arrived_.data(), staging.words.data(), words.size_bytes(),
                                   cudaMemcpyHostToDevice, stream_.get()));
    staging.sent.record(stream_);
    on_its_way_ = part;
  }

  void take(const Part& part) {
    const uint64_t checksum =
        device_checksum(reinterpret_cast<const uint64_t*>(arrived_.data()),
                        kWordsAtOnce * sizeof(uint32_t) / sizeof(uint64_t), stream_.get());
    if (checksum != part.checksum) {
      lose_device("the packing table of pack " + std::to_string(part.pack) +
                  " arrived altered in the device's memory");
    }
    start_cut_table({arrived_.data(), part.first_group, part.pack, tables_.pack_count_,
                     tables_.columns_.data()},
                    kGroupsAtOnce, stream_.get());
  }

  DeviceTables& tables_;
  DeviceMemory<uint32_t> arrived_;
  Staging staging_[2];
  unsigned next_ = 0;
  std::optional<Part> on_its_way_;
  Stream stream_;  // last: through before the memory goes
};

uint64_t DeviceTables::bytes_for(size_t pack_count) {
  return tables_bytes(static_cast<uint32_t>(pack_count)) + sizeof(uint32_t) * kWordsAtOnce;
}

DeviceTables::DeviceTables(std::span<const SharedPackingTable> tables, uint64_t bytes_beside)
    : pack_count_(static_cast<uint32_t>(tables.size())) {
  require_room(bytes_for(tables.size()) + bytes_beside, "the packing tables and their queries",
               "build the database in the mode hint, or serve it with --engine cpu");
  columns_ = DeviceMemory<int8_t>(tables_bytes(pack_count_));
  Upload upload(*this);
  for (uint32_t pack = 0; pack < pack_count_; ++pack) {
    upload.send(pack, PackingTable(tables[pack].get(), kTableWords));
  }
  upload.finish();
}

}  // namespace blindfuse
