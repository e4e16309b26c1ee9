// Packed responses from query to bytes: everything that a client and a server do, but for the wire.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "client/ring_query.h"
#include "host/packing/hint_polynomials.h"
#include "host/packing/packing_table_builder.h"
#include "host/packing/response_packer.h"
#include "src/bit_packing.h"
#include "src/ring/modulus_switch.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using Coefficients = std::array<uint32_t, kDimension>;

constexpr uint32_t kRows = 3 * kDimension;
constexpr size_t kColumns = 1500;  // a pack that is not full
constexpr uint32_t kQueryBits = 28;
constexpr unsigned kResponseBits = 10;
constexpr unsigned kMaskBits = 18;

// Everything of one pack, made once, as it takes a while.
struct Pack {
  const ring::PublicPolynomials polynomials{ChaChaKey{1, 2, 3}};
  std::vector<std::vector<int8_t>> columns;
  std::vector<uint32_t> hints = std::vector<uint32_t>(kDimension * kDimension);
  std::vector<uint32_t> table = std::vector<uint32_t>(kTableWords);
  Coefficients mask;

  Pack() {
    std::mt19937_64 generator(1);
    const HintPolynomials hint(polynomials, kRows);
    for (size_t c = 0; c < kColumns; ++c) {
      std::vector<int8_t>& column = columns.emplace_back(kRows);
      // Some columns as bad for the noise as can be.
      for (int8_t& byte : column) byte = c % 50 == 0 ? -128 : static_cast<int8_t>(generator());
      hint.compute(column, ring::MutablePolynomial(hints.data() + c * kDimension, kDimension));
    }
    PackingTableBuilder(polynomials).build(hints, MutablePackingTable(table), mask);
  }
};

const Pack& pack() {
  static const Pack made;
  return made;
}

std::vector<uint32_t> responses(std::span<const uint32_t> query) {
  std::vector<uint32_t> made;
  for (const std::vector<int8_t>& column : pack().columns) {
    uint32_t sum = 0;
    for (size_t i = 0; i < kRows; ++i) sum += query[i] * static_cast<uint32_t>(column[i]);
    made.push_back(sum);
  }
  return made;
}

// What a client gets that asks for these rows.
struct LookUp {
  std::vector<uint8_t> expected, bytes = std::vector<uint8_t>(kDimension);
  std::vector<double> noise;  // of each column, in units of which 2^32 are one turn

  LookUp(std::vector<uint32_t> rows, uint64_t seed) {
    PreparedRingQuery prepared = prepare_ring_query(pack().polynomials, kRows, seeded_random(seed));
    std::vector<uint8_t> sent(packed_bytes(kRows, kQueryBits));
    RingDecoder decoder(std::move(prepared.query).encrypt(rows, kQueryBits, sent));
    const PackingKeys keys = PackingKeys::read(prepared.packing_keys);

    std::vector<uint32_t> query(kRows);
    unpack_restored(sent, kQueryBits, 0, query);
    Coefficients body;
    const std::vector<uint32_t> words = responses(query);
    const ResponsePacker::Task task{&keys, words, body};
    ResponsePacker().pack(PackingTable(pack().table), {&task, 1});
    Coefficients mask = pack().mask;
    for (uint32_t& each : mask) each = ring::raise(ring::lower(each, kMaskBits), kMaskBits);
    for (uint32_t& each : body) each = ring::raise(ring::lower(each, kResponseBits), kResponseBits);
    decoder.decode(mask, body, std::span<uint8_t, kDimension>(bytes));
    Coefficients phases;
    decoder.phases(mask, body, phases);
    for (const std::vector<int8_t>& column : pack().columns) {
      uint32_t sum = 0;
      for (const uint32_t row : rows) sum += static_cast<uint32_t>(column[row]);
      expected.push_back(static_cast<uint8_t>(sum));
      const ring::PrimeField field(ring::kPackingModulus);
      const uint32_t exact = ring::raise(expected.back(), 8);
      noise.push_back(
          static_cast<double>(field.centered(field.subtract(phases[noise.size()], exact))));
    }
    bytes.resize(kColumns);
  }
};

TEST(Packing, GivesTheBytesOfTheRows) {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const LookUp found({static_cast<uint32_t>(seed), 2047 + static_cast<uint32_t>(seed), kRows - 1},
                       seed);
    EXPECT_EQ(found.bytes, found.expected);
  }
}

double deviation(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum / static_cast<double>(numbers.size()));
}

// The terms of docs/PARAMETERS.md, by hand for these sizes: rounded responses are uniform in 2^22;
// a rounded mask adds s times what is uniform in 2^14; 2047 switches add three products of digits
// uniform in 256 with a ternary error, and s times what is uniform in 256. The query's own noise
// depends on the column; that of random bytes is 2^15.9 here.
TEST(Packing, HasTheNoiseThatIsExpected) {
  const double d = kDimension;
  const double uniform = 1.0 / 12;
  const double response = std::ldexp(1, 44) * uniform;
  const double mask = d * 2 / 3 * std::ldexp(1, 28) * uniform;
  const double digits = 2047 * 3 * d * 2 / 3 * std::ldexp(1, 16) * uniform;
  const double dropped = 2047 * d * 2 / 3 * std::ldexp(1, 16) * uniform;
  const double query = kRows * (2.0 / 3 + std::ldexp(1, 8) * uniform) * std::ldexp(1, 16) * uniform;
  const double expected = std::sqrt(response + mask + digits + dropped + query);
  const double found = deviation(LookUp({5, 6, 7}, 11).noise);
  EXPECT_NEAR(found / expected, 1, 0.06) << found << " and " << expected;
}

TEST(Packing, GivesZerosForNoRows) {
  const LookUp found({}, 7);
  EXPECT_EQ(found.bytes, found.expected);
}

}  // namespace
}  // namespace blindfuse
