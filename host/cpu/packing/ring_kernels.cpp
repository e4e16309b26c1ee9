#include "host/cpu/packing/ring_kernels.h"

#include "host/cpu/amx/amx.h"

namespace blindfuse {
namespace {

class KernelNtt final : public ring::Ntt {
 public:
  KernelNtt(const RingKernel& kernel, uint32_t modulus)
      : Ntt(modulus), kernel_(kernel), tables_(field_, kernel.lanes) {}

  void forward(ring::MutablePolynomial polynomial) const override {
    kernel_.forward(tables_.view(), polynomial.data());
  }
  void inverse(ring::MutablePolynomial polynomial) const override {
    kernel_.inverse(tables_.view(), polynomial.data());
  }
  void add_products(ring::Polynomial a, ring::Polynomial b,
                    ring::MutablePolynomial sum) const override {
    kernel_.add_products(tables_.view(), a.data(), b.data(), sum.data());
  }

 private:
  const RingKernel kernel_;
  const VectorNttTables tables_;
};

std::vector<RingKernel> runnable() {
  std::vector<RingKernel> found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512ifma")) {
    if (__builtin_cpu_supports("avx512bw") && amx_runs_here()) {
      RingKernel amx = kAvx512RingKernel;
      amx.name = "amx";
      amx.batch = &kAmxBatchSums;
      found.push_back(amx);
    }
    found.push_back(kAvx512RingKernel);
  }
  if (__builtin_cpu_supports("avx2")) found.push_back(kAvx2RingKernel);
#endif
  found.push_back(kPortableRingKernel);
  return found;
}

}  // namespace

const std::vector<RingKernel>& ring_kernels() {
  static const std::vector<RingKernel> all = runnable();
  return all;
}

std::unique_ptr<const ring::Ntt> make_ntt(const RingKernel& kernel, uint32_t modulus) {
  if (kernel.lanes == 0) return ring::portable_ntt(modulus);
  return std::make_unique<const KernelNtt>(kernel, modulus);
}

}  // namespace blindfuse
