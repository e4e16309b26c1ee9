// u32 x i8 with the dot products of Armv8.2: a word is four signed bytes, low to high
// l0 + 2^8 l1 + 2^16 l2 + 2^24 l3 modulo 2^32, and sdot multiplies 16 bytes with 16 and adds fours
// of them to four sums. When the four bytes' sums are put together they wrap, modulo 2^32, as they
// should.
//
// Roofline: 4 multiply-adds an instruction, of which large cores issue two to four a cycle.
// Thirty-two registers hold a tile of one query and six columns.
#include <arm_neon.h>
#include <sys/auxv.h>

#include "host/cpu/scan/multiply_tiles.h"

namespace blindfuse {
namespace {

struct Unit {
  static constexpr size_t kQueries = 1;
  static constexpr size_t kColumns = 6;
  static constexpr size_t kAheadBytes = kUsualAheadBytes;

  template <size_t Q, size_t C>
  struct Sums {
    static_assert(Q == 1);
    int32x4_t limbs[4][C];

    Sums() {
      for (auto& limb : limbs) {
        for (int32x4_t& sum : limb) sum = vdupq_n_s32(0);
      }
    }

    void add(const uint8_t* const* queries, size_t group, const int8_t* columns) {
      for (size_t part = 0; part < kGroupRows; part += 16) {
        const auto* query =
            reinterpret_cast<const int8_t*>(queries[0] + group * kGroupBytes + part);
        int8x16_t words[4];
        for (size_t l = 0; l < 4; ++l) words[l] = vld1q_s8(query + kGroupRows * l);
        for (size_t j = 0; j < C; ++j) {
          const int8x16_t bytes = vld1q_s8(columns + j * kGroupRows + part);
          for (size_t l = 0; l < 4; ++l) {
            limbs[l][j] = vdotq_s32(limbs[l][j], words[l], bytes);
            BLINDFUSE_KEEP_IN_REGISTER(limbs[l][j]);
          }
        }
      }
    }

    void add_to(uint32_t* const* products) const {
      for (size_t j = 0; j < C; ++j) {
        uint32x4_t words[4];  // unsigned, whose overflow is defined
        for (size_t l = 0; l < 4; ++l) words[l] = vreinterpretq_u32_s32(limbs[l][j]);
        const uint32x4_t high = vaddq_u32(words[2], vshlq_n_u32(words[3], 8));
        const uint32x4_t low = vaddq_u32(words[0], vshlq_n_u32(words[1], 8));
        products[0][j] += vaddvq_u32(vaddq_u32(low, vshlq_n_u32(high, 16)));
      }
    }
  };
};

// The k-th signed bytes of 64 words become the k-th 64 bytes.
void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  for (size_t g = 0; g < group_count; ++g) {
    const uint32_t* from = words + g * group_stride;
    uint8_t* to = limbs + g * kGroupBytes;
    for (size_t r = 0; r < kGroupRows; ++r) {
      uint32_t left = from[r];
      for (size_t l = 0; l < 4; ++l) {
        to[kGroupRows * l + r] = static_cast<uint8_t>(left);
        // The byte is signed: carry its borrow into the next one.
        left = (left + 0x80) >> 8;
      }
    }
  }
}

bool runs_here() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }

}  // namespace

constinit const MultiplyKernel kMultiplyNeonDotprod{
    "neondot", runs_here, cut, [](const MultiplyArgs& args) { multiply_tiles<Unit>(args); }};

}  // namespace blindfuse
