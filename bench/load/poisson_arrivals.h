// The arrival times of requests that do not wait for one another: a Poisson process.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace blindfuse::load {

class PoissonArrivals {
 public:
  // `rate` arrivals a second on average, above 0; the same for the same seed.
  PoissonArrivals(double rate, uint64_t seed) : random_(seed), gap_(rate) {}

  // From one arrival to the next.
  std::chrono::nanoseconds next_gap() {
    return std::chrono::nanoseconds(static_cast<int64_t>(gap_(random_) * 1e9));
  }

 private:
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;
};

}  // namespace blindfuse::load
