#include "tests/cuda/products.h"

namespace blindfuse::emulator {
namespace {

using Row = std::array<int16_t, 32>;  // so that the compiler multiplies eight at once

int16_t byte_of(uint32_t word, uint32_t i) { return static_cast<int8_t>(word >> 8 * i); }

// 16 rows of 32: word 0 of a lane has row g, columns 4 t ...; word 1 row g + 8; words 2 and 3 the
// same rows, columns 16 + 4 t ...
template <class Words>
void gather(const Words& words, std::array<Row, 16>& rows) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t word = i / 4;
      rows[lane / 4 + word % 2 * 8][word / 2 * 16 + lane % 4 * 4 + i % 4] =
          byte_of(words[lane][word], i % 4);
    }
  }
}

uint32_t product(const Row& a, const Row& b) {
  int32_t sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return static_cast<uint32_t>(sum);
}

void add_to(int32_t& sum, uint32_t value) {
  sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + value);
}

}  // namespace

void WarpProduct::compute() const {
  std::array<Row, 16> rows;
  gather(a, rows);
  std::array<Row, 8> columns;  // word w of a lane has rows 16 w + 4 t ... of column g
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 8; ++i) {
      columns[lane / 4][i / 4 * 16 + lane % 4 * 4 + i % 4] = byte_of(b[lane][i / 4], i % 4);
    }
  }
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) {
      add_to(sums[lane][i], product(rows[lane / 4 + i / 2 * 8], columns[lane % 4 * 2 + i % 2]));
    }
  }
}

std::vector<uint32_t> described_rows(uint64_t descriptor, uint32_t rows, uint32_t window) {
  const auto field = [&](unsigned from, unsigned bits) {
    return static_cast<uint32_t>(descriptor >> from & ((uint64_t{1} << bits) - 1));
  };
  const uint32_t start = field(0, 14) * 16;
  const uint32_t eight_rows = field(32, 14) * 16;
  const bool is_in_first_row = (start & 0x39f) == 0;  // of eight, and at a multiple of 32 bytes
  if (field(49, 3) != 0 || field(62, 2) != 1 || start < window || !is_in_first_row) return {};
  std::vector<uint32_t> places;
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t piece = 0; piece < 2; ++piece) {
      const uint32_t at = start + row / 8 * eight_rows + row % 8 * 128 + piece * 16;
      // Bits 4 to 6 of the address are exclusive-or-ed with bits 7 to 9.
      places.push_back((at ^ (at >> 7 & 7) << 4) - window);
    }
  }
  return places;
}

void GroupProduct::compute(const uint8_t* shared) const {
  if (operand.empty()) return;
  const auto read = [&](const std::vector<uint32_t>& places, uint32_t number, Row& row) {
    for (uint32_t k = 0; k < 32; ++k) {
      row[k] = static_cast<int8_t>(shared[places[2 * number + k / 16] + k % 16]);
    }
  };
  std::array<Row, 16> rows;
  if (matrix.empty()) gather(a, rows);
  for (uint32_t m = 0; m < 16 && !matrix.empty(); ++m) read(matrix, warp * 16 + m, rows[m]);
  for (uint32_t n = 0; n < columns; ++n) {
    Row column;
    read(operand, n, column);
    // A lane has two neighbouring columns of every eight: of row g, then of row g + 8.
    for (uint32_t row = 0; row < 16; ++row) {
      const uint32_t lane = row % 8 * 4 + n % 8 / 2;
      add_to(sums[lane][n / 8 * 4 + row / 8 * 2 + n % 2], product(rows[row], column));
    }
  }
}

}  // namespace blindfuse::emulator
