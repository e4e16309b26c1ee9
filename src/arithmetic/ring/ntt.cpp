#include "src/arithmetic/ring/ntt.h"

#include <algorithm>
#include <array>

#include "src/arithmetic/ring/twiddles.h"

namespace blindfuse::ring {
namespace {

class PortableNtt final : public Ntt {
 public:
  explicit PortableNtt(uint32_t modulus) : Ntt(modulus), twiddles_(field_) {}

  void forward(MutablePolynomial polynomial) const override {
    std::array<uint32_t, kDimension> x;
    std::copy(polynomial.begin(), polynomial.end(), x.begin());
    for (size_t blocks = 1, gap = kDimension / 2; gap > 0; blocks *= 2, gap /= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const MontgomeryConstant twiddle = twiddles_.forward[blocks + block];
        uint32_t* low = x.data() + 2 * block * gap;
        for (size_t i = 0; i < gap; ++i) {
          const uint32_t turned = twiddle.times(low[i + gap], field_);
          low[i + gap] = field_.subtract(low[i], turned);
          low[i] = field_.add(low[i], turned);
        }
      }
    }
    const auto& orbit_order = Twiddles::orbit_order();
    for (size_t k = 0; k < kDimension; ++k) polynomial[k] = x[orbit_order[k]];
    clear(x);
  }

  void inverse(MutablePolynomial polynomial) const override {
    std::array<uint32_t, kDimension> x;
    const auto& orbit_order = Twiddles::orbit_order();
    for (size_t k = 0; k < kDimension; ++k) x[orbit_order[k]] = polynomial[k];
    for (size_t blocks = kDimension / 2, gap = 1; blocks > 0; blocks /= 2, gap *= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const MontgomeryConstant twiddle = twiddles_.inverse[blocks + block];
        uint32_t* low = x.data() + 2 * block * gap;
        for (size_t i = 0; i < gap; ++i) {
          const uint32_t difference = field_.subtract(low[i], low[i + gap]);
          low[i] = field_.add(low[i], low[i + gap]);
          low[i + gap] = twiddle.times(difference, field_);
        }
      }
    }
    for (size_t i = 0; i < kDimension; ++i) polynomial[i] = twiddles_.scale.times(x[i], field_);
    clear(x);
  }

  void add_products(Polynomial a, Polynomial b, MutablePolynomial sum) const override {
    for (size_t i = 0; i < kDimension; ++i) {
      sum[i] = field_.add(sum[i], field_.multiply(a[i], b[i]));
    }
  }

 private:
  // Clients transform secrets, and nothing of them may stay on the stack.
  static void clear(std::array<uint32_t, kDimension>& x) {
    x.fill(0);
    asm volatile("" : : "r"(x.data()) : "memory");
  }

  const Twiddles twiddles_;
};

}  // namespace

std::unique_ptr<const Ntt> portable_ntt(uint32_t modulus) {
  return std::make_unique<const PortableNtt>(modulus);
}

}  // namespace blindfuse::ring
