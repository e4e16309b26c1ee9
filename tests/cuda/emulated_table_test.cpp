// What the suite of all engines does not see of packs made on a GPU: several of them, whose
// products would take an emulator too long, and what is said of memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cuda/cuda_engine_maker.h"
#include "cuda/packing/device_packs.h"
#include "cuda/packing/kernels/table_args.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "src/base/errors.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using support::SeededRandom;

TEST(EmulatedCudaTables, OfSeveralPacksAreThoseOfTheHost) {
  SeededRandom random(150);
  constexpr uint64_t kColumns = kPackColumns + 700;
  const std::vector<uint32_t> words = random.words(kDimension * kColumns);
  std::vector<uint32_t> key_masks(ring::kKeyWords);
  for (uint32_t& value : key_masks) {
    value = static_cast<uint32_t>(random.below(ring::kPackingModulus));
  }
  DeviceMemory<uint32_t> device_words(words.size());
  std::ranges::copy(words, device_words.data());
  DevicePacks packs(0, std::move(device_words), key_masks);
  const PackingTableBuilder builder(key_masks);
  std::vector<uint32_t> table(kTableWords), expected_table(kTableWords);
  std::array<uint32_t, kDimension> mask{}, expected_mask{};
  for (const uint32_t pack : {1, 0}) {
    std::vector<uint32_t> hints(kPackColumns * kDimension);
    for (uint64_t c = pack * kPackColumns; c < std::min(kColumns, (pack + 1) * kPackColumns); ++c) {
      for (uint64_t i = 0; i < kDimension; ++i) {
        hints[c % kPackColumns * kDimension + i] = words[i * kColumns + c];
      }
    }
    builder.build(hints, MutablePackingTable(expected_table), expected_mask);
    packs.read(pack, MutablePackingTable(table), mask);
    EXPECT_TRUE(table == expected_table) << "pack " << pack;
    EXPECT_EQ(mask, expected_mask) << "pack " << pack;
  }
}

TEST(EmulatedCudaTables, RefuseColumnsThatMemoryCannotHold) {
  const std::vector<uint32_t> blocks(kDimension), key_masks(ring::kKeyWords);
  // 128 packs, whose tables and squares are 3.2 and 1.1 GB. By hand, of each: squares of 8,388,608
  // bytes, a table of 25,141,248, a mask of 8,192.
  const auto maker = make_cuda_engine_maker({}, 0)->make_pack_maker(blocks, key_masks, kDimension,
                                                                    128 * kPackColumns);
  try {
    maker->seal();
    ADD_FAILURE();
  } catch (const ResourceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("packing tables that are being made need 4292870144 bytes"),
              std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace blindfuse
