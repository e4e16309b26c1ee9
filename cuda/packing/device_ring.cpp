#include "cuda/packing/device_ring.h"

#include <array>

#include "cuda/device/stream.h"
#include "src/arithmetic/ring/butterflies.h"

namespace blindfuse {

using ring::kDimension;

DeviceRing::DeviceRing() : forward_(kDimension), inverse_(kDimension), points_(kDimension) {
  const ring::Butterflies butterflies(ring::PrimeField(ring::kPackingModulus));
  scale_ = butterflies.scale;
  std::array<uint16_t, kDimension> points;
  const auto& places = ring::Butterflies::places();
  for (size_t k = 0; k < kDimension; ++k) points[places[k]] = static_cast<uint16_t>(k);
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  const Stream stream;
  const auto send = [&](void* to, const void* from, size_t bytes) {
    BLINDFUSE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream.get()));
  };
  send(forward_.data(), butterflies.forward.data(), kDimension * sizeof(ring::Factor));
  send(inverse_.data(), butterflies.inverse.data(), kDimension * sizeof(ring::Factor));
  send(points_.data(), points.data(), sizeof(points));
  stream.wait();
}

RingView DeviceRing::view() const {
  return {forward_.data(), inverse_.data(), points_.data(), scale_,
          ring::PrimeField(ring::kPackingModulus)};
}

}  // namespace blindfuse
