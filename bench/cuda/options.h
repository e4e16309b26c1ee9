// What is measured, and how often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace blindfuse::bench {

struct Shape {
  std::string_view name;
  uint64_t rows;
  uint64_t columns;
};

// Each is far larger than any cache of a GPU: 4.3, 15.3 and 1.2 GB.
inline constexpr Shape kScanShapes[] = {
    {"square", 131'072, 32'768},
    {"billion", 233'472, 65'536},
    {"tall", 1'179'648, 1'040},
};
// Of these, the one whose responses are packed under clients' secrets as well, with 16 packing
// tables, and the sizes of batches that are timed.
inline constexpr Shape kPackedShape = kScanShapes[0];
inline constexpr size_t kPackedBatches[] = {1, 8, 64};
// A million rows of one record of 1 KiB.
inline constexpr Shape kHintShape{"hint", 1'048'576, 1'032};
// 16 packs: the tables and masks of packed responses.
inline constexpr Shape kPackShape{"packs", 131'072, 32'768};
// What the kernels have to agree on first. Neither their steps of rows nor their tiles of columns
// come out even.
inline constexpr Shape kCheckShape{"check", 4'096 + 64, 1'040};

struct Options {
  std::vector<std::string> kernels = {"all"};
  std::vector<std::string> shapes;  // none: all of them
  std::vector<size_t> batches = {1, 2, 3, 4, 8, 16, 32, 64, 128};
  unsigned rounds = 7;
  int device = 0;
  bool json = false;
  std::string json_file;
};

}  // namespace blindfuse::bench
