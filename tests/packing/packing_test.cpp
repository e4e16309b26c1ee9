// Packed responses from query to bytes: everything that a client and a server do, without the wire.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "client/ring_query.h"
#include "host/cpu/packing/hint_polynomials.h"
#include "host/cpu/packing/packing_table_builder.h"
#include "host/cpu/packing/response_packer.h"
#include "src/arithmetic/bit_sequence.h"
#include "src/arithmetic/ring/modulus_switch.h"
#include "src/protocol/public_polynomials.h"
#include "tests/client/seeded_random.h"

namespace blindfuse {
namespace {

using ring::kDimension;
using Coefficients = std::array<uint32_t, kDimension>;

constexpr uint32_t kPackedRows = 3 * kDimension;
constexpr size_t kPackedColumns = 700;  // a pack that is not full
constexpr uint32_t kQueryBits = 28;

// How much of a response and of a mask is sent.
struct Bits {
  unsigned response = 10;
  unsigned mask = 18;
};

// Everything of one pack, made once, as it takes a while.
struct Pack {
  const ring::PublicPolynomials polynomials{ChaChaKey{1, 2, 3}};
  std::vector<std::vector<int8_t>> columns;
  std::vector<uint32_t> hints = std::vector<uint32_t>(kPackColumns * kDimension);
  std::vector<uint32_t> table = std::vector<uint32_t>(kTableWords);
  Coefficients mask;

  Pack() {
    std::mt19937_64 generator(1);
    const HintPolynomials hint(polynomials.blocks(kPackedRows));
    for (size_t c = 0; c < kPackedColumns; ++c) {
      std::vector<int8_t>& column = columns.emplace_back(kPackedRows);
      // Some columns as bad for the noise as can be.
      for (int8_t& byte : column) byte = c % 50 == 0 ? -128 : static_cast<int8_t>(generator());
      hint.compute(column, ring::MutablePolynomial(hints.data() + c * kDimension, kDimension));
    }
    PackingTableBuilder(polynomials.key_masks()).build(hints, MutablePackingTable(table), mask);
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
    for (size_t i = 0; i < kPackedRows; ++i) sum += query[i] * static_cast<uint32_t>(column[i]);
    made.push_back(sum);
  }
  return made;
}

// A client that asks for some rows.
class LookUp {
 public:
  LookUp(std::vector<uint32_t> rows, uint64_t seed) : rows_(std::move(rows)) {
    PreparedQuery prepared = std::move(
        RingQueryMaker(pack().polynomials, kPackedRows).make(1, seeded_random(seed)).front());
    constexpr size_t kWordsBytes = bit_sequence_bytes(kPackedRows, kQueryBits);
    std::vector<uint8_t> sent(kWordsBytes + ring::kKeyBytes);
    decoder_.emplace(std::move(prepared).encrypt(rows_, kQueryBits, sent));
    keys_.emplace(PackingKeys::read(std::span(sent).subspan(kWordsBytes)));
    std::vector<uint32_t> query(kPackedRows);
    read_bit_sequence(std::span(sent).first(kWordsBytes), kQueryBits, 0, query);
    words_ = responses(query);
  }

  // What the server does, into `body`.
  ResponsePacker::Task task() { return {keys_->words(), words_, body_}; }

  std::vector<uint8_t> expected() const {
    std::vector<uint8_t> bytes;
    for (const std::vector<int8_t>& column : pack().columns) {
      uint32_t sum = 0;
      for (const uint32_t row : rows_) sum += static_cast<uint32_t>(column[row]);
      bytes.push_back(static_cast<uint8_t>(sum));
    }
    return bytes;
  }
  std::vector<uint8_t> bytes(Bits bits = {}) const {
    std::array<uint8_t, kPackColumns> found;
    const Coefficients body = rounded(body_, bits.response);
    decoder_->decode(rounded(pack().mask, bits.mask), std::span(body).first<kPackColumns>(), found);
    return {found.begin(), found.begin() + kPackedColumns};
  }
  // The deviation from the exact bytes, in units of which 2^32 are one turn.
  double noise(Bits bits) const {
    std::array<uint32_t, kPackColumns> phases;
    const Coefficients body = rounded(body_, bits.response);
    decoder_->phases(rounded(pack().mask, bits.mask), std::span(body).first<kPackColumns>(),
                     phases);
    const std::vector<uint8_t> exact = expected();
    const ring::PrimeField field(ring::kPackingModulus);
    double sum = 0;
    for (size_t c = 0; c < kPackedColumns; ++c) {
      const uint32_t apart = field.subtract(phases[c], ring::switch_to_q(exact[c], 8));
      sum += std::pow(static_cast<double>(field.centered(apart)), 2);
    }
    return std::sqrt(sum / kPackedColumns);
  }

 private:
  static Coefficients rounded(Coefficients coefficients, unsigned bits) {
    for (uint32_t& each : coefficients)
      each = ring::switch_to_q(ring::switch_from_q(each, bits), bits);
    return coefficients;
  }

  std::vector<uint32_t> rows_;
  std::optional<RingDecoder> decoder_;
  std::optional<PackingKeys> keys_;
  std::vector<uint32_t> words_;
  Coefficients body_;
};

// Several clients' queries go in one pass.
TEST(Packing, GivesTheBytesOfTheRows) {
  std::vector<std::unique_ptr<LookUp>> clients;
  std::vector<ResponsePacker::Task> tasks;
  for (uint32_t seed = 0; seed < 5; ++seed) {
    clients.push_back(
        std::make_unique<LookUp>(std::vector<uint32_t>{seed, 2047 + seed, kPackedRows - 1}, seed));
    tasks.push_back(clients.back()->task());
  }
  ResponsePacker().pack(PackingTable(pack().table), tasks);
  for (const auto& client : clients) EXPECT_EQ(client->bytes(), client->expected());
}

// The terms of docs/PARAMETERS.md, by hand for these sizes: 1023 switches add three products of
// digits uniform in 256 with a ternary error, and s times what is uniform in 256; a mask of 18 bits
// adds s times what is uniform in 2^14; a response of 10 bits is uniform in 2^22. The query's own
// noise depends on the column; that of random bytes is 2^14.7 here.
TEST(Packing, HasTheNoiseThatIsExpected) {
  const double uniform = 1.0 / 12;
  const double secret = kDimension * 2.0 / 3;
  const double digits = 1023 * 3 * secret * std::ldexp(1, 16) * uniform;
  const double dropped = 1023 * secret * std::ldexp(1, 16) * uniform;
  const double query =
      kPackedRows * (2.0 / 3 + std::ldexp(1, 8) * uniform) * std::ldexp(1, 16) * uniform;
  const double mask = secret * std::ldexp(1, 28) * uniform;
  const double response = std::ldexp(1, 44) * uniform;

  LookUp client({5, 6, 7}, 11);
  const ResponsePacker::Task task = client.task();
  ResponsePacker().pack(PackingTable(pack().table), {&task, 1});
  const double switching = digits + dropped + query;
  EXPECT_NEAR(client.noise({32, 32}) / std::sqrt(switching), 1, 0.1);
  EXPECT_NEAR(client.noise({32, 18}) / std::sqrt(switching + mask), 1, 0.1);
  EXPECT_NEAR(client.noise({10, 18}) / std::sqrt(switching + mask + response), 1, 0.05);
}

// Tables are the same from every kernel, bit for bit.
TEST(Packing, TablesDoNotDependOnTheKernel) {
  std::vector<uint32_t> table(kTableWords);
  Coefficients mask;
  const RingKernel& portable = ring_kernels().back();
  PackingTableBuilder(pack().polynomials.key_masks(), portable)
      .build(pack().hints, MutablePackingTable(table), mask);
  EXPECT_TRUE(table == pack().table);
  EXPECT_EQ(mask, pack().mask);
}

}  // namespace
}  // namespace blindfuse
