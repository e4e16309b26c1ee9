// u32 x i8 with AVX-512: bytes widened to 32 bits, vpmulld and vpaddd on 16 lanes.
//
// Roofline: one multiply-add of 16 words takes one vpmulld (one a cycle on Zen 4 and 5, half of
// that on Intel) and one vpaddd; a byte of the matrix is one multiply-add a query, so one query
// alone is bound by memory on every machine we know.
#include <immintrin.h>

#include "host/cpu/multiply_tiles.h"

namespace blindfuse {
namespace {

struct Vector {
  static constexpr size_t kLanes = 16;
  static constexpr size_t kTileColumns = 4;

  static Vector load_words(const uint32_t* words) { return {_mm512_loadu_si512(words)}; }
  static Vector load_bytes(const int8_t* bytes) {
    return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)))};
  }
  void add_product(Vector a, Vector b) {
    lanes = _mm512_add_epi32(lanes, _mm512_mullo_epi32(a.lanes, b.lanes));
  }
  // Not _mm512_reduce_add_epi32: GCC 12 writes that as additions of int, whose overflow is
  // undefined.
  uint32_t sum() const {
    const __m256i eight =
        _mm256_add_epi32(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
  }

  __m512i lanes = _mm512_setzero_si512();
};

}  // namespace

void multiply_avx512(const KernelTask& task) { multiply_tiles<Vector>(task); }

}  // namespace blindfuse
