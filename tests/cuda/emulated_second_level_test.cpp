// The second level of packed responses on a GPU: bit for bit what the host computes, for batches
// that do not fit its memory at once, and the memory itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cuda/device/stream.h"
#include "cuda/packing/device_second_level.h"
#include "host/cpu/packing/packing_keys.h"
#include "host/cpu/packing/second_level_packer.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/second_level_problem.h"
#include "tests/support.h"

namespace blindfuse {
namespace {

using emulator::SecondLevelProblem;
using emulator::SecondLevelSizes;
using ring::kDimension;
using support::SeededRandom;

// The squares of one query of one pack.
constexpr uint64_t kOneQuery = uint64_t{8} << 20;

std::span<const uint8_t> response_of(const DeviceSecondLevel& level, uint32_t query) {
  return {reinterpret_cast<const uint8_t*>(level.responses(0) + query * level.response_pitch()),
          level.response_bytes()};
}

void compute(const DeviceSecondLevel& level, const SecondLevelProblem& problem,
             const SecondLevelSizes& sizes) {
  const Stream stream;
  level.start(0,
              {sizes.queries, problem.words(), problem.word_pitch(), sizes.words, problem.extras(),
               problem.extra_pitch()},
              stream.get());
  stream.wait();
}

// What the host makes of a query, lowered.
std::vector<uint8_t> host_response(const SecondLevelProblem& problem, const SecondLevelSizes& sizes,
                                   uint32_t query) {
  const SecondLevelSpec spec = problem.spec();
  const SecondLevelPacker packer(spec.blocks, spec.key_order,
                                 {spec.key_masks.begin(), spec.key_masks.end()});
  std::array<uint32_t, PackingKeys::kWords> key;
  PackingKeys::unpack({reinterpret_cast<const uint8_t*>(problem.key(query)), ring::kKeyBytes}, key);
  std::vector<uint32_t> numbers;
  std::vector<int32_t> entries;
  for (uint32_t row = 0; row < sizes.rows; ++row) {
    numbers.push_back(problem.row_number(query, row));
    for (uint32_t c = 0; c < sizes.columns; ++c) entries.push_back(problem.entry(query, row, c));
  }
  const auto lowered = [](uint32_t word, uint32_t bits) {
    return restore_word(ring::switch_from_q(word, bits), bits);
  };
  std::vector<uint8_t> sent(spec.response_bytes());
  std::span<uint8_t> rest(sent);
  std::vector<uint32_t> words;
  for (uint32_t first = 0; first < sizes.columns; first += kPackColumns) {
    const size_t count = std::min<size_t>(kPackColumns, sizes.columns - first);
    std::array<uint32_t, kDimension> mask{};
    std::array<uint32_t, kPackColumns> body{};
    packer.pack(
        {key.data(), numbers, std::span(entries).subspan(first), sizes.columns, count, mask, body});
    for (uint32_t& word : mask) word = lowered(word, sizes.mask_bits);
    const uint64_t mask_bytes = bit_sequence_bytes(kDimension, sizes.mask_bits);
    write_bit_sequence(mask, sizes.mask_bits, rest.first(mask_bytes));
    rest = rest.subspan(mask_bytes);
    for (size_t k = 0; k < count; ++k) words.push_back(lowered(body[k], sizes.response_bits));
  }
  write_bit_sequence(words, sizes.response_bits, rest);
  return sent;
}

TEST(EmulatedCudaSecondLevel, IsThatOfTheHost) {
  SeededRandom random(160);
  // Two blocks of rows, of which the last words are missing; one query at a time.
  const SecondLevelSizes sizes{.queries = 2,
                               .rows = kDimension + 10,
                               .columns = 5,
                               .words = 5 * (kDimension + 10) - 7,
                               .key_order = 0};
  const SecondLevelProblem problem(random, sizes);
  const DeviceSecondLevel level(problem.spec(), 1, sizes.queries, kOneQuery);
  compute(level, problem, sizes);
  for (uint32_t query = 0; query < sizes.queries; ++query) {
    EXPECT_TRUE(std::ranges::equal(response_of(level, query), host_response(problem, sizes, query)))
        << "query " << query;
  }
}

// Rows of more than 1024 columns.
TEST(EmulatedCudaSecondLevel, OfTwoPacksIsThatOfTheHost) {
  SeededRandom random(161);
  const SecondLevelSizes sizes{
      .queries = 1, .rows = 3, .columns = 1030, .words = 3 * 1030, .key_order = 0};
  const SecondLevelProblem problem(random, sizes);
  const DeviceSecondLevel level(problem.spec(), 1, 1);
  compute(level, problem, sizes);
  EXPECT_TRUE(std::ranges::equal(response_of(level, 0), host_response(problem, sizes, 0)));
}

// All at once, and in parts of two queries and of one; by the host, and by definition.
TEST(EmulatedCudaSecondLevel, GivesTheSameInPartsUnderShortKeys) {
  SeededRandom random(162);
  const SecondLevelSizes sizes{.queries = 3, .rows = 4, .columns = 6, .words = 22, .key_order = 8};
  const SecondLevelProblem problem(random, sizes);
  const DeviceSecondLevel whole(problem.spec(), 1, 3), parts(problem.spec(), 1, 3, 2 * kOneQuery);
  compute(whole, problem, sizes);
  compute(parts, problem, sizes);
  for (uint32_t query = 0; query < sizes.queries; ++query) {
    EXPECT_TRUE(std::ranges::equal(response_of(whole, query), response_of(parts, query)));
    EXPECT_TRUE(
        std::ranges::equal(response_of(whole, query), host_response(problem, sizes, query)));
    EXPECT_TRUE(std::ranges::equal(response_of(whole, query),
                                   problem.expected_response_by_definition(query)));
  }
}

TEST(EmulatedCudaSecondLevel, TakesTheMemoryThatItSays) {
  SeededRandom random(163);
  for (const uint32_t key_order : {0u, 64u}) {
    const SecondLevelProblem problem(
        random,
        {.queries = 1, .rows = 3000, .columns = 50, .words = 150'000, .key_order = key_order});
    for (const size_t batch_max : {size_t{1}, size_t{5}}) {
      const uint64_t before = fake_cuda::allocated_bytes();
      const DeviceSecondLevel level(problem.spec(), 2, batch_max, 3 * kOneQuery);
      EXPECT_EQ(fake_cuda::allocated_bytes() - before,
                DeviceSecondLevel::bytes_of(problem.spec(), 2, batch_max, 3 * kOneQuery));
    }
  }
}

}  // namespace
}  // namespace blindfuse
