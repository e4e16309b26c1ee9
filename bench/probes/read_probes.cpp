// Napkin, on an H200: 4.8 TB/s that take 0.7 us to come are 3.4 MB on their way, 25 KB for each of
// 132 multiprocessors: plans have from 4 KB to 128 KB in flight, the accelerator's 16 KB to 208 KB.
#include <algorithm>
#include <string>

#include "bench/probes/probe.h"
#include "bench/probes/probe_kernels.h"
#include "bench/probes/tensor_shape.h"
#include "cuda/device/check.h"
#include "cuda/device/memory.h"
#include "cuda/device/tensor_map.h"

namespace blindfuse::probes {
namespace {

constexpr LoadPlan kLoadPlans[] = {{1, 1}, {2, 1}, {4, 1}, {4, 2}, {4, 4}, {4, 6}, {4, 8}};
constexpr uint32_t kStages[] = {1, 2, 3, 4, 5, 6, 8, 10, kTensorStagesMax};
// Far more than any cache of a GPU holds; less on a device that has no room for it.
constexpr uint64_t kBytesMax = uint64_t{4} << 30;
constexpr uint64_t kLimbBytes[] = {uint64_t{512} << 10, uint64_t{2} << 20, uint64_t{8} << 20,
                                   uint64_t{32} << 20, uint64_t{128} << 20};

class FilledTiles {
 public:
  FilledTiles(Probe& probe, uint64_t pitch, uint64_t bytes_max)
      : walk_(make_tile_walk(pitch, bytes_max)), bytes_(walk_.bytes()), sum_(1) {
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
    start_fill(reinterpret_cast<uint32_t*>(bytes_.data()), word_count(), probe.stream().get());
    probe.stream().wait();
  }

  const TileWalk& walk() const { return walk_; }
  const uint8_t* data() const { return bytes_.data(); }
  uint32_t* sum() const { return sum_.data(); }

  // True if `start` adds all words to the sum, `times` times.
  template <typename Start>
  bool is_right(Probe& probe, uint32_t times, const Start& start) const {
    const cudaStream_t stream = probe.stream().get();
    uint32_t sum = 0;
    BLINDFUSE_CUDA(cudaMemsetAsync(sum_.data(), 0, sizeof sum, stream));
    start();
    BLINDFUSE_CUDA(cudaMemcpyAsync(&sum, sum_.data(), sizeof sum, cudaMemcpyDeviceToHost, stream));
    probe.stream().wait();
    return sum == times * sum_of_words(word_count());
  }

 private:
  uint64_t word_count() const { return walk_.bytes() / sizeof(uint32_t); }

  const TileWalk walk_;
  const DeviceMemory<uint8_t> bytes_;
  const DeviceMemory<uint32_t> sum_;
};

uint64_t bytes_to_read() {
  size_t free = 0, total = 0;
  BLINDFUSE_CUDA(cudaMemGetInfo(&free, &total));
  return std::min<uint64_t>(kBytesMax, free / 2);
}

std::string gigabytes(double rate, uint32_t in_flight) {
  return std::to_string(static_cast<uint64_t>(rate / 1e9)) + " GB/s with " +
         std::to_string(in_flight >> 10) + " KB in flight";
}

// Prints a line of a read, and whether it is right.
template <typename Start>
void measure_read(Probe& probe, const FilledTiles& tiles, nlohmann::json line, uint32_t in_flight,
                  const Start& start) {
  const bool is_right = tiles.is_right(probe, 1, start);
  const double seconds = probe.seconds(start);
  const auto bytes = static_cast<double>(tiles.walk().bytes());
  line.update({{"pitch", tiles.walk().pitch},
               {"bytes_in_flight_a_processor", in_flight},
               {"bytes", tiles.walk().bytes()},
               {"seconds", seconds},
               {"bytes_per_second", bytes / seconds}});
  probe.print(line, bytes / seconds, gigabytes(bytes / seconds, in_flight), is_right);
}

}  // namespace

void probe_loads(Probe& probe, uint64_t pitch) {
  const FilledTiles tiles(probe, pitch, bytes_to_read());
  for (const LoadPlan& plan : kLoadPlans) {
    // These blocks would not run at the same time.
    if (plan.threads_a_processor() > probe.device().threads_a_processor) continue;
    const uint32_t blocks = plan.blocks_a_processor * probe.device().processor_count;
    measure_read(probe, tiles,
                 {{"loads_a_thread", plan.loads}, {"blocks_a_processor", plan.blocks_a_processor}},
                 plan.bytes_in_flight(), [&] {
                   start_read_tiles(plan, tiles.walk(), tiles.data(), 0, false, blocks, tiles.sum(),
                                    probe.stream().get());
                 });
  }
}

void probe_tensor_copies(Probe& probe, uint64_t pitch) {
  if (probe.device().major < 9) {
    return probe.leave_out("compute capability 9.0 or later is needed");
  }
  const FilledTiles tiles(probe, pitch, bytes_to_read());
  const CUtensorMap map = make_tensor_map(tiles.data(), tensor_shape(tiles.walk()));
  for (const uint32_t stages : kStages) {
    measure_read(probe, tiles, {{"stages", stages}}, stages * kTileBytes, [&] {
      start_read_tensor(map, tiles.walk(), stages, probe.device().processor_count, tiles.sum(),
                        probe.stream().get());
    });
  }
}

void probe_limb_reads(Probe& probe) {
  // Every size takes as long as one read of a block's memory.
  constexpr uint64_t kBytesOfBlock = uint64_t{64} << 20;
  constexpr LoadPlan kPlan{4, 4};
  const uint32_t blocks = kPlan.blocks_a_processor * probe.device().processor_count;
  for (const uint64_t size : kLimbBytes) {
    const FilledTiles tiles(probe, kPieceBytes, size);
    const auto passes = static_cast<uint32_t>(std::max<uint64_t>(1, kBytesOfBlock / size));
    for (const bool spread : {false, true}) {
      const auto start = [&] {
        start_read_tiles(kPlan, tiles.walk(), tiles.data(), passes, spread, blocks, tiles.sum(),
                         probe.stream().get());
      };
      const bool is_right = tiles.is_right(probe, blocks * passes, start);
      const double seconds = probe.seconds(start);
      const double bytes = static_cast<double>(tiles.walk().bytes()) * blocks * passes;
      const nlohmann::json line = {
          {"limb_bytes", tiles.walk().bytes()}, {"blocks", blocks}, {"passes", passes},
          {"begin_together", !spread},          {"bytes", bytes},   {"seconds", seconds},
          {"bytes_per_second", bytes / seconds}};
      probe.print(line, bytes / seconds,
                  std::to_string(static_cast<uint64_t>(bytes / seconds / 1e9)) + " GB/s of " +
                      std::to_string(size >> 10) + " KB that all blocks read",
                  is_right);
    }
  }
}

}  // namespace blindfuse::probes
