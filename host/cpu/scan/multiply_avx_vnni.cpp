// u32 x i8 with AVX-VNNI: what multiply_avx512_vnni.cpp does, on 256 bits, for processors without
// AVX-512.
//
// Roofline: 8 multiply-adds an instruction. Sixteen registers hold a tile of one query and three
// columns: twelve sums, three vectors of columns, one of the query.
#include <cpuid.h>
#include <immintrin.h>

#include "host/cpu/scan/multiply_tiles.h"

namespace blindfuse {
namespace {

struct Unit {
  static constexpr size_t kQueries = 1;
  static constexpr size_t kColumns = 3;
  static constexpr size_t kAheadBytes = kUsualAheadBytes;

  template <size_t Q, size_t C>
  struct Sums {
    static_assert(Q == 1);
    __m256i limbs[4][C];

    Sums() {
      for (auto& limb : limbs) {
        for (__m256i& sum : limb) sum = _mm256_setzero_si256();
      }
    }

    void add(const uint8_t* const* queries, size_t group, const int8_t* columns) {
      for (size_t half = 0; half < 64; half += 32) {
        const uint8_t* query = queries[0] + group * kGroupBytes + half;
        __m256i bytes[C];
        for (size_t j = 0; j < C; ++j) {
          bytes[j] =
              _mm256_load_si256(reinterpret_cast<const __m256i*>(columns + j * kGroupRows + half));
          BLINDFUSE_KEEP_IN_REGISTER(bytes[j]);
        }
        for (size_t l = 0; l < 4; ++l) {
          const __m256i words = _mm256_load_si256(reinterpret_cast<const __m256i*>(query + 64 * l));
          for (size_t j = 0; j < C; ++j) {
            limbs[l][j] = _mm256_dpbusd_avx_epi32(limbs[l][j], words, bytes[j]);
            BLINDFUSE_KEEP_IN_REGISTER(limbs[l][j]);
          }
        }
      }
    }

    void add_to(uint32_t* const* products) const {
      for (size_t j = 0; j < C; ++j) {
        const __m256i high = _mm256_add_epi32(limbs[2][j], _mm256_slli_epi32(limbs[3][j], 8));
        const __m256i low = _mm256_add_epi32(limbs[0][j], _mm256_slli_epi32(limbs[1][j], 8));
        const __m256i all = _mm256_add_epi32(low, _mm256_slli_epi32(high, 16));
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
        products[0][j] += static_cast<uint32_t>(_mm_cvtsi128_si32(four));
      }
    }
  };
};

// The k-th bytes of 64 words become the k-th 64 bytes.
void cut(const uint32_t* words, size_t group_stride, size_t group_count, uint8_t* limbs) {
  for (size_t g = 0; g < group_count; ++g) {
    const uint32_t* from = words + g * group_stride;
    uint8_t* to = limbs + g * kGroupBytes;
    for (size_t l = 0; l < 4; ++l) {
      for (size_t r = 0; r < kGroupRows; ++r) {
        to[kGroupRows * l + r] = static_cast<uint8_t>(from[r] >> (8 * l));
      }
    }
  }
}

bool runs_here() {
  // The compiler's own test for AVX-VNNI came later than its instructions.
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __builtin_cpu_supports("avx2") != 0 &&
         __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & (1u << 4)) != 0;
}

}  // namespace

constinit const MultiplyKernel kMultiplyAvxVnni{
    "avxvnni", runs_here, cut, [](const MultiplyArgs& args) { multiply_tiles<Unit>(args); }};

}  // namespace blindfuse
