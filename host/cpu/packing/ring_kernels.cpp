#include "host/cpu/packing/ring_kernels.h"

#include "host/cpu/amx/amx.h"

namespace blindfuse {
namespace {

class KernelNtt final : public KeySwitchNtt {
 public:
  KernelNtt(const RingKernel& kernel, uint32_t modulus)
      : KeySwitchNtt(modulus), kernel_(kernel), tables_(field_, kernel.lanes) {}

  void forward(ring::MutablePolynomial polynomial) const override {
    kernel_.forward(tables_.view(), polynomial.data(), ring::kDimension);
  }
  void forward_first(ring::MutablePolynomial polynomial, size_t count) const override {
    kernel_.forward(tables_.view(), polynomial.data(), count);
  }
  void inverse(ring::MutablePolynomial polynomial) const override {
    kernel_.inverse(tables_.view(), polynomial.data());
  }
  void add_products(ring::Polynomial a, ring::Polynomial b,
                    ring::MutablePolynomial sum) const override {
    kernel_.add_products(tables_.view(), a.data(), b.data(), sum.data());
  }
  void add_divided_products(ring::Polynomial a, ring::Polynomial b,
                            ring::MutablePolynomial sum) const override {
    kernel_.add_divided_products(tables_.view(), a.data(), b.data(), sum.data());
  }
  void join_halves(ring::Polynomial values, ring::MutablePolynomial joined) const override {
    kernel_.join_halves(tables_.view(), values.data(), joined.data());
  }
  void add_digit_products(const DigitProducts& products) const override {
    kernel_.add_digit_products(tables_.view(), products);
  }
  void decompose(ring::Polynomial polynomial, DigitPolynomials& digits) const override {
    uint32_t* of_digits[ring::kDigits];
    for (size_t k = 0; k < ring::kDigits; ++k) of_digits[k] = digits[k].data();
    kernel_.decompose(tables_.view(), polynomial.data(), of_digits);
  }

 private:
  const RingKernel kernel_;
  const VectorNttTables tables_;
};

class PortableNtt final : public KeySwitchNtt {
 public:
  explicit PortableNtt(uint32_t modulus)
      : KeySwitchNtt(modulus), ntt_(ring::portable_ntt(modulus)) {}

  void forward(ring::MutablePolynomial polynomial) const override { ntt_->forward(polynomial); }
  void forward_first(ring::MutablePolynomial polynomial, size_t /*count*/) const override {
    ntt_->forward(polynomial);
  }
  void inverse(ring::MutablePolynomial polynomial) const override { ntt_->inverse(polynomial); }
  void add_products(ring::Polynomial a, ring::Polynomial b,
                    ring::MutablePolynomial sum) const override {
    ntt_->add_products(a, b, sum);
  }
  void add_divided_products(ring::Polynomial a, ring::Polynomial b,
                            ring::MutablePolynomial sum) const override {
    for (size_t i = 0; i < ring::kDimension; ++i) {
      sum[i] = field_.add(sum[i], field_.redc(uint64_t{a[i]} * b[i]));
    }
  }
  void join_halves(ring::Polynomial values, ring::MutablePolynomial joined) const override {
    for (size_t i = 0; i < ring::kOrbit; ++i) {
      joined[i] = field_.add(values[i], values[ring::kOrbit + i]);
      joined[ring::kOrbit + i] = field_.subtract(values[ring::kOrbit + i], values[i]);
    }
  }
  void add_digit_products(const DigitProducts& products) const override {
    for (size_t i = 0; i < ring::kOrbit; ++i) {
      for (size_t k = 0; k < ring::kDigits; ++k) {
        const uint64_t product = uint64_t{products.digits[k][i]} * products.keys[k][i];
        products.sum[i] = field_.add(products.sum[i], field_.redc(product));
      }
    }
  }
  void decompose(ring::Polynomial polynomial, DigitPolynomials& digits) const override {
    for (size_t i = 0; i < ring::kDimension; ++i) {
      const auto found = ring::decompose(polynomial[i], field_);
      for (size_t k = 0; k < ring::kDigits; ++k) digits[k][i] = field_.reduce_signed(found[k]);
    }
  }

 private:
  const std::unique_ptr<const ring::Ntt> ntt_;
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

std::unique_ptr<const KeySwitchNtt> make_ntt(const RingKernel& kernel, uint32_t modulus) {
  if (kernel.lanes == 0) return std::make_unique<const PortableNtt>(modulus);
  return std::make_unique<const KernelNtt>(kernel, modulus);
}

}  // namespace blindfuse
