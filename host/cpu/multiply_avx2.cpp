// u32 x i8 with AVX2: bytes widened to 32 bits, vpmulld and vpaddd on 8 lanes. Sixteen registers
// hold a tile of 4 queries x 2 columns.
#include <immintrin.h>

#include "host/cpu/multiply_tiles.h"

namespace blindfuse {
namespace {

struct Vector {
  static constexpr size_t kLanes = 8;
  static constexpr size_t kTileColumns = 2;

  static Vector load_words(const uint32_t* words) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words))};
  }
  static Vector load_bytes(const int8_t* bytes) {
    return {_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)))};
  }
  void add_product(Vector a, Vector b) {
    lanes = _mm256_add_epi32(lanes, _mm256_mullo_epi32(a.lanes, b.lanes));
  }
  uint32_t sum() const {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
  }

  __m256i lanes = _mm256_setzero_si256();
};

}  // namespace

void multiply_avx2(const KernelTask& task) { multiply_tiles<Vector>(task); }

}  // namespace blindfuse
