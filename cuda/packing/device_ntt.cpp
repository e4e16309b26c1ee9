#include "cuda/packing/device_ntt.h"

#include <array>

#include "cuda/device/stream.h"
#include "src/arithmetic/ring/ntt.h"

namespace blindfuse {

using ring::kDimension;

DeviceNtt::DeviceNtt() : forward_(kDimension), inverse_(kDimension), points_(kDimension) {
  const ring::Twiddles twiddles(ring::PrimeField(ring::kPackingModulus));
  scale_ = twiddles.scale;
  std::array<uint16_t, kDimension> points;
  const auto& orbit_order = ring::Twiddles::orbit_order();
  for (size_t k = 0; k < kDimension; ++k) points[orbit_order[k]] = static_cast<uint16_t>(k);
  BLINDFUSE_CUDA(cudaDeviceSynchronize());  // all is cleared
  const Stream stream;
  const auto send = [&](void* to, const void* from, size_t bytes) {
    BLINDFUSE_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream.get()));
  };
  send(forward_.data(), twiddles.forward.data(), kDimension * sizeof(ring::MontgomeryConstant));
  send(inverse_.data(), twiddles.inverse.data(), kDimension * sizeof(ring::MontgomeryConstant));
  send(points_.data(), points.data(), sizeof(points));
  stream.wait();
}

NttView DeviceNtt::view() const {
  return {forward_.data(), inverse_.data(), points_.data(), scale_,
          ring::PrimeField(ring::kPackingModulus)};
}

}  // namespace blindfuse
