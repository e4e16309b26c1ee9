// The functions that the files with AMX instructions share. Only files that are compiled for AMX
// include this.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace blindfuse {

// Rows of the eight tile registers; each is 64 bytes wide.
struct TileRows {
  uint8_t rows[8] = {16, 16, 16, 16, 16, 16, 16, 16};
};

inline void configure_tiles(const TileRows& tiles) {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {};
  } config;
  for (size_t i = 0; i < 8; ++i) config.rows[i] = tiles.rows[i];
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

// The compiler does not see what tile instructions read and write.
inline void tiles_use_memory() { asm volatile("" : : : "memory"); }

// out[i] has 128-bit lane i of all four.
inline void transpose_lanes(const __m512i (&in)[4], __m512i (&out)[4]) {
  const __m512i even01 = _mm512_shuffle_i32x4(in[0], in[1], 0x88);
  const __m512i odd01 = _mm512_shuffle_i32x4(in[0], in[1], 0xdd);
  const __m512i even23 = _mm512_shuffle_i32x4(in[2], in[3], 0x88);
  const __m512i odd23 = _mm512_shuffle_i32x4(in[2], in[3], 0xdd);
  out[0] = _mm512_shuffle_i32x4(even01, even23, 0x88);
  out[1] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
  out[2] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
  out[3] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
}

}  // namespace blindfuse
