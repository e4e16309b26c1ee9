// u32 x i8 in plain C++, for every machine. The compiler chooses the instructions.
#include "host/cpu/scan/multiply_tiles.h"

namespace blindfuse {
namespace {

struct Unit {
  static constexpr size_t kQueries = 1;
  static constexpr size_t kColumns = 1;
  static constexpr size_t kAheadBytes = kUsualAheadBytes;

  template <size_t Q, size_t C>
  struct Sums {
    uint32_t sum = 0;

    void add(const uint8_t* const* queries, size_t group, const int8_t* columns) {
      const auto* words = reinterpret_cast<const uint32_t*>(queries[0] + group * kGroupBytes);
      const int8_t* bytes = columns;
      for (size_t r = 0; r < kGroupRows; ++r) {
        sum += words[r] * static_cast<uint32_t>(int32_t{bytes[r]});
      }
    }

    void add_to(uint32_t* const* products) const { products[0][0] += sum; }
  };
};

void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  auto* to = reinterpret_cast<uint32_t*>(limbs);
  for (size_t g = 0; g < group_count; ++g) {
    for (size_t r = 0; r < kGroupRows; ++r) to[g * kGroupRows + r] = words[g * group_stride + r];
  }
}

bool runs_here() { return true; }

}  // namespace

constinit const MultiplyKernel kMultiplyPortable{
    "portable", runs_here, cut, [](const MultiplyArgs& args) { multiply_tiles<Unit>(args); }};

}  // namespace blindfuse
