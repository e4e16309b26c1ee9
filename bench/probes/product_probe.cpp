// Napkin, on an H200: 132 multiprocessors with 4096 multiply-adds of bytes a clock each are 950 T a
// second at 1.755 GHz. A round of N = 256 is 16.8 M of them: 4096 clocks, 2.3 us.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "bench/probes/probe.h"
#include "bench/probes/probe_kernels.h"
#include "bench/probes/shared_product.h"
#include "cuda/device/check.h"
#include "cuda/device/memory.h"

namespace blindfuse::probes {
namespace {

constexpr uint32_t kLargest = 256;

class Products {
 public:
  explicit Products(Probe& probe)
      : probe_(probe), hashes_(probe.device().processor_count), clock_(2) {
    BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  }

  // Times this many rounds, and prints a line.
  void measure(uint32_t columns, uint32_t rounds, double elapsed) {
    const cudaStream_t stream = probe_.stream().get();
    BLINDFUSE_CUDA(cudaMemsetAsync(hashes_.data(), 0, hashes_.size() * sizeof(uint32_t), stream));
    const auto blocks = static_cast<uint32_t>(hashes_.size());
    seconds_ = probe_.seconds_once([&] {
      start_multiply_rounds(columns, rounds, blocks, hashes_.data(), clock_.data(), stream);
    });
    std::vector<uint32_t> hashes(hashes_.size());
    uint64_t clock[2] = {};
    BLINDFUSE_CUDA(cudaMemcpyAsync(hashes.data(), hashes_.data(), hashes.size() * sizeof(uint32_t),
                                   cudaMemcpyDeviceToHost, stream));
    BLINDFUSE_CUDA(
        cudaMemcpyAsync(clock, clock_.data(), sizeof clock, cudaMemcpyDeviceToHost, stream));
    probe_.stream().wait();
    const uint32_t expected = hash_of_round(columns) * rounds;
    const auto wrong =
        std::ranges::count_if(hashes, [&](uint32_t hash) { return hash != expected; });
    const double rate =
        static_cast<double>(round_multiply_adds(columns)) * rounds * blocks / seconds_;
    const double clocks_a_second =
        clock[1] == 0 ? 0 : static_cast<double>(clock[0]) * 1e9 / static_cast<double>(clock[1]);
    const nlohmann::json line = {{"columns", columns},
                                 {"rounds", rounds},
                                 {"blocks", blocks},
                                 {"elapsed", elapsed},
                                 {"seconds", seconds_},
                                 {"byte_multiply_adds_per_second", rate},
                                 {"clocks_per_second", clocks_a_second},
                                 {"wrong_blocks", wrong}};
    probe_.print(line, rate,
                 std::to_string(static_cast<uint64_t>(rate / 1e12)) +
                     " T multiply-adds/s with N = " + std::to_string(columns) + " at " +
                     std::to_string(static_cast<uint64_t>(clocks_a_second / 1e6)) + " MHz",
                 wrong == 0);
  }

  double seconds() const { return seconds_; }  // of the last

 private:
  // The hash is computed once, so that the device stays busy.
  uint32_t hash_of_round(uint32_t columns) {
    const auto [at, is_new] = hashes_of_round_.try_emplace(columns);
    if (is_new) at->second = expected_hash(columns);
    return at->second;
  }

  Probe& probe_;
  const DeviceMemory<uint32_t> hashes_;
  const DeviceMemory<uint64_t> clock_;
  std::map<uint32_t, uint32_t> hashes_of_round_;
  double seconds_ = 0;
};

// This many rounds take about this time, as far as `rounds` have taken `seconds`.
uint32_t rounds_for(double wanted, uint32_t rounds, double seconds) {
  constexpr double kMost = 1e7;
  return static_cast<uint32_t>(std::clamp(rounds * wanted / seconds, 1.0, kMost));
}

}  // namespace

void probe_products(Probe& probe) {
  if (probe.device().major != 9) return probe.leave_out("compute capability 9.0 is needed");
  constexpr uint32_t kFirstRounds = 1'000;
  constexpr double kPart = 0.25;  // seconds
  Products products(probe);
  uint32_t rounds = kFirstRounds;
  for (const uint32_t columns : product_columns()) {
    products.measure(columns, kFirstRounds, 0);
    rounds = rounds_for(kPart, kFirstRounds, products.seconds());
    products.measure(columns, rounds, 0);
  }
  // The time is measured in parts, so that falling clocks show.
  for (double elapsed = 0; elapsed < probe.options().seconds; elapsed += products.seconds()) {
    products.measure(kLargest, rounds, elapsed);
  }
}

}  // namespace blindfuse::probes
