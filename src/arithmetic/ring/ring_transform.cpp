#include "src/arithmetic/ring/ring_transform.h"

#include <algorithm>
#include <array>

#include "src/arithmetic/ring/butterflies.h"

namespace blindfuse::ring {
namespace {

class PortableTransform final : public RingTransform {
 public:
  explicit PortableTransform(uint32_t modulus) : RingTransform(modulus), butterflies_(field_) {}

  void forward(MutablePolynomial polynomial) const override {
    std::array<uint32_t, kDimension> x;
    std::copy(polynomial.begin(), polynomial.end(), x.begin());
    for (size_t blocks = 1, gap = kDimension / 2; gap > 0; blocks *= 2, gap /= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const Factor factor = butterflies_.forward[blocks + block];
        uint32_t* low = x.data() + 2 * block * gap;
        for (size_t i = 0; i < gap; ++i) {
          const uint32_t turned = factor.times(low[i + gap], field_);
          low[i + gap] = field_.subtract(low[i], turned);
          low[i] = field_.add(low[i], turned);
        }
      }
    }
    const auto& places = Butterflies::places();
    for (size_t k = 0; k < kDimension; ++k) polynomial[k] = x[places[k]];
    clear(x);
  }

  void inverse(MutablePolynomial polynomial) const override {
    std::array<uint32_t, kDimension> x;
    const auto& places = Butterflies::places();
    for (size_t k = 0; k < kDimension; ++k) x[places[k]] = polynomial[k];
    for (size_t blocks = kDimension / 2, gap = 1; blocks > 0; blocks /= 2, gap *= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const Factor factor = butterflies_.inverse[blocks + block];
        uint32_t* low = x.data() + 2 * block * gap;
        for (size_t i = 0; i < gap; ++i) {
          const uint32_t difference = field_.subtract(low[i], low[i + gap]);
          low[i] = field_.add(low[i], low[i + gap]);
          low[i + gap] = factor.times(difference, field_);
        }
      }
    }
    for (size_t i = 0; i < kDimension; ++i) polynomial[i] = butterflies_.scale.times(x[i], field_);
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

  const Butterflies butterflies_;
};

}  // namespace

std::unique_ptr<const RingTransform> portable_transform(uint32_t modulus) {
  return std::make_unique<const PortableTransform>(modulus);
}

}  // namespace blindfuse::ring
